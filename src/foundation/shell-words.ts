// Quotes words for a shell.

/** The word, in quotes if a shell would otherwise split or expand it. */
export function quoteShellWord(text: string): string {
  return /^[\w.@:/=+,-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}
