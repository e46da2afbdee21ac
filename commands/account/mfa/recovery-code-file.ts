// Hands over recovery codes: to a file, or to the terminal with the question whether they are saved.
import { Flags } from '@oclif/core'
import { findFileTarget, ReservedFile } from '../../client/reserved-file.ts'
import { CommandError, EXIT } from '../../foundation/exit-codes.ts'
import type { CommandRun } from '../../framework/connected.ts'
import { canPrompt, confirm, promptText } from '../../terminal/prompts.ts'

export const recoveryCodesFileFlag = Flags.string({
  description: 'Write the recovery codes to this file, with mode 0600, instead of showing them.',
  helpValue: 'FILE',
})

/**
 * Calls `obtain`, and hands over the recovery codes that it returns. The space of the file is reserved before, so that codes
 * that exist once are not lost to a full disk.
 * @param outcome what is reported besides the codes
 */
export async function handOverRecoveryCodes(
  { flags, print, notice }: CommandRun,
  outcome: { readonly sentence: string; readonly facts: Readonly<Record<string, unknown>> },
  obtain: () => Promise<readonly string[]>,
): Promise<void> {
  const path = flags['recovery-codes-file'] as string | undefined
  if (path !== undefined) {
    const file = ReservedFile.create(findFileTarget(path))
    try {
      file.commit(toFileText(await obtain()))
    } finally {
      file.release()
    }
    const sentence = `${outcome.sentence}\nWrote the recovery codes to ${path}. Keep it where you find it without your device.`
    return print({ kind: 'done', sentence, facts: { ...outcome.facts, recoveryCodesFile: path } })
  }
  const codes = await obtain()
  await print({
    kind: 'done',
    sentence: toSentence(outcome.sentence, codes),
    facts: { ...outcome.facts, recoveryCodes: codes },
  })
  if (canPrompt()) await makeSureSaved(codes, notice)
}

/** @throws CommandError with exit code 130 if the user interrupts, which undoes nothing */
async function makeSureSaved(codes: readonly string[], notice: CommandRun['notice']): Promise<void> {
  try {
    if (await confirm('Have you saved the recovery codes?', '--recovery-codes-file')) return
    const path = await promptText('Write them to a file (empty: do not)', '--recovery-codes-file')
    if (path.trim() === '') return notice('Show them again with: controller mfa recovery-codes')
    ReservedFile.create(findFileTarget(path.trim())).commit(toFileText(codes))
    notice(`Wrote the recovery codes to ${path.trim()}.`)
  } catch (error) {
    if (!(error instanceof CommandError && error.exitCode === EXIT.interrupted)) throw error
    throw new CommandError(
      EXIT.interrupted,
      error.code,
      'interrupted: your second factor and its recovery codes are valid',
      {
        hint: 'show the recovery codes again: controller mfa recovery-codes',
      },
    )
  }
}

const CODES_PER_LINE = 5

function toSentence(sentence: string, codes: readonly string[]): string {
  const lines: string[] = []
  for (let at = 0; at < codes.length; at += CODES_PER_LINE)
    lines.push(`  ${codes.slice(at, at + CODES_PER_LINE).join('  ')}`)
  return `${sentence}\nEach recovery code signs you in once without your device:\n${lines.join('\n')}`
}

function toFileText(codes: readonly string[]): string {
  return `${codes.join('\n')}\n`
}
