// `controller doctor`: every check, and what is wrong or soon will be, each with the command that helps.
import { Flags } from '@oclif/core'
import type { Fix, Report } from '../../src/maintenance/doctor/diagnosis.ts'
import { EXIT } from '../foundation/exit-codes.ts'
import { type CommandRun, defineConnectedCommand } from '../framework/connected.ts'
import { escapeControls } from '../terminal/text.ts'

/** The results of the checks, with the repairs if they were asked for. */
type FixReport = Report & { readonly fixes?: readonly Fix[] }

export const doctor = defineConnectedCommand({
  summary: 'Checks the controller and the network: shows what is wrong, or soon will be, and what helps.',
  description: 'Changes nothing without --fix. Exits with 0 if nothing is wrong, and with 3 if something is.',
  flags: {
    fix: Flags.boolean({
      description:
        'Take the rights of other accounts off the files of the data directory. Everything else is a decision.',
    }),
  },
  example: '',
  leavesAccess: true,
  run: diagnose,
})

/** Exit code 3 if there is any diagnosis. */
async function diagnose({ client, flags, print }: CommandRun): Promise<number> {
  const { data } =
    flags.fix === true
      ? await client.call('POST', '/controller/doctor/fix')
      : await client.call('GET', '/controller/doctor')
  const report = data as FixReport
  const sentence = renderReport(report).map(escapeControls).join('\n')
  await print({ kind: 'done', sentence, facts: { ...report } })
  return report.diagnoses.length > 0 ? EXIT.denied : EXIT.done
}

function renderReport({ checks, diagnoses, fixes = [] }: FixReport): string[] {
  const lines = fixes.flatMap(({ check, subject, message }) => [`fixed ${check}: ${subject}`, `    ${message}`])
  for (const { name, summary, outcome } of checks) {
    if (outcome === 'passed') lines.push(`✓ ${name}: ${summary}`)
    if (outcome === 'unknown') lines.push(`? ${name}: unknown without a running controller`)
    for (const { subject, message, remedy } of diagnoses.filter(({ check }) => check === name))
      lines.push(`✗ ${name}: ${subject}`, `    ${message}`, `    Try: ${remedy}`)
  }
  const failedCount = checks.filter(({ outcome }) => outcome === 'failed').length
  const problems = diagnoses.length === 1 ? '1 problem' : `${diagnoses.length} problems`
  return [
    ...lines,
    '',
    failedCount === 0 ? 'Nothing is wrong.' : `${problems}, found by ${failedCount} of ${checks.length} checks.`,
  ]
}
