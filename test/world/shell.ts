// Command lines as a shell takes them apart: words, and words in single quotes.

export function wordsOf(line: string): string[] {
  return [...line.matchAll(/'((?:[^']|'\\'')*)'|(\S+)/g)].map(
    ([, quoted, bare]) => quoted?.replaceAll(`'\\''`, "'") ?? bare ?? '',
  )
}
