// Marks the directory of a quickstart until all is made and printed: what it made is of no use before, because only its output may have the
// password of the administrator.
import { closeSync, existsSync, openSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { quoteShellWord } from '../../src/foundation/shell-words.ts'
import { CommandError, EXIT } from '../foundation/exit-codes.ts'

const toPath = (home: string) => join(home, '.quickstart-unfinished')

/** @throws CommandError with exit code 6 if another quickstart works in the directory, or was interrupted there */
export function assertFinished(home: string): void {
  if (existsSync(toPath(home))) throw unfinishedError(home)
}

/** Marks a directory. Returns the function that removes the mark. @throws CommandError as `assertFinished` does */
export function markUnfinished(home: string): () => void {
  const path = toPath(home)
  try {
    closeSync(openSync(path, 'wx', 0o600))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') throw unfinishedError(home)
    throw error
  }
  return () => rmSync(path, { force: true })
}

function unfinishedError(home: string): CommandError {
  const message = `a quickstart has begun in ${home}, and not printed yet how to sign in`
  const paths = [join(home, 'data'), toPath(home)].map(quoteShellWord).join(' ')
  const hint = `wait until it has; if it was interrupted: rm -r ${paths}, and run the command again`
  return new CommandError(EXIT.conflict, 'QUICKSTART_UNFINISHED', message, { hint })
}
