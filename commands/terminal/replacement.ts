// Asks before a command replaces a file that exists.
import { CommandError, EXIT } from '../foundation/exit-codes.ts'
import { canPrompt, confirm } from './prompts.ts'

/**
 * @param content what the file has or is, after "exists, and"
 * @param flag the flag that names another file
 * @throws CommandError with exit code 6 unless the user confirms at a prompt
 */
export async function confirmReplacement(path: string, content: string, flag: string): Promise<void> {
  if (canPrompt() && (await confirm(`${path} exists, and ${content}. Replace it?`, '--force'))) return
  throw new CommandError(EXIT.conflict, 'FILE_EXISTS', `${path} exists already: nothing was changed`, {
    hint: `--${flag} with another file, or --force`,
  })
}
