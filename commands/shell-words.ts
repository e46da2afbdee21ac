// Words as they are typed into a shell.

/** A word in quotes where a shell would otherwise take it apart. */
export function quoteShellWord(text: string): string {
  return /^[\w.@:/=+,-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}

/** A command line that can be pasted. */
export function toCommandLine(command: string, argv: readonly string[]): string {
  return ['controller', command, ...argv.map(quoteShellWord)].filter((word) => word !== '').join(' ')
}
