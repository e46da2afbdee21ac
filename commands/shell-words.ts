// Words as they are typed into a shell.

/** A word in quotes where a shell would otherwise take it apart. */
export function shellWord(text: string): string {
  return /^[\w.@:/=+,-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}

/** A command line that can be pasted. */
export function commandLine(command: string, argv: readonly string[]): string {
  return ['controller', command, ...argv.map(shellWord)].filter((word) => word !== '').join(' ')
}
