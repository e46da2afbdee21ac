// Command lines of this program for a shell.
import { quoteShellWord } from '../../src/foundation/shell-words.ts'

/** A command line of this program that can be pasted into a shell. */
export function toCommandLine(command: string, argv: readonly string[]): string {
  return ['controller', command, ...argv.map(quoteShellWord)].filter((word) => word !== '').join(' ')
}
