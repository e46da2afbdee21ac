// Quotes words for a shell.

/** The word, in quotes if a shell would otherwise split or expand it. */
export function quoteShellWord(text: string): string {
  return /^[\w.@:/=+,-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}

/** A command line of this program that can be pasted into a shell. */
export function toCommandLine(command: string, argv: readonly string[]): string {
  return ['controller', command, ...argv.map(quoteShellWord)].filter((word) => word !== '').join(' ')
}
