// `controller doctor`: what is wrong, or soon will be, each with the command that helps.
import { type CommandRun, defineConnectedCommand } from './connected.ts'
import { EXIT } from './exit-codes.ts'
import { escapeLines } from './output/text.ts'

interface Diagnosis {
  readonly check: string
  readonly subject: string
  readonly message: string
  readonly remedy: string
}

export const doctor = defineConnectedCommand({
  summary: 'Shows what is wrong with the controller or the network, or soon will be, and what helps.',
  example: '',
  run: diagnose,
})

/** Exit code 3 if there is any diagnosis. */
async function diagnose({ client, print }: CommandRun): Promise<number> {
  const { data } = await client.call('GET', '/controller/doctor')
  const diagnoses = data as readonly Diagnosis[]
  const lines = diagnoses.flatMap(({ check, subject, message, remedy }) => [
    `${check}: ${subject}`,
    `  ${message}`,
    `  Try: ${remedy}`,
  ])
  const sentence = lines.length === 0 ? 'Nothing is wrong.' : lines.join('\n')
  await print({ kind: 'done', sentence: escapeLines(sentence), facts: { diagnoses: [...diagnoses] } })
  return diagnoses.length > 0 ? EXIT.denied : EXIT.done
}
