// Suggestions for a mistyped word.

/** At most three candidates that are similar to the word, the most similar first. */
export function findNearest(word: string, candidates: Iterable<string>): string[] {
  const lowerCaseWord = word.toLowerCase()
  const maxDistance = Math.max(1, Math.ceil(word.length / 3))
  return [...new Set(candidates)]
    .map((candidate) => ({ candidate, distance: computeDistance(lowerCaseWord, candidate.toLowerCase()) }))
    .filter(({ distance }) => distance <= maxDistance)
    .sort((a, b) => a.distance - b.distance || (a.candidate < b.candidate ? -1 : 1))
    .slice(0, 3)
    .map(({ candidate }) => candidate)
}

/** The Damerau-Levenshtein distance, but 1 if the candidate begins with the word. */
function computeDistance(word: string, candidate: string): number {
  if (word.length >= 2 && candidate.startsWith(word)) return 1
  return computeEditDistance(word, candidate)
}

function computeEditDistance(a: string, b: string): number {
  let beforeLast: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, at) => at)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const isSame = a[i - 1] === b[j - 1]
      let least = Math.min((last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (last[j - 1] ?? 0) + (isSame ? 0 : 1))
      const isSwapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      if (isSwapped) least = Math.min(least, (beforeLast[j - 2] ?? 0) + 1)
      row.push(least)
    }
    beforeLast = last
    last = row
  }
  return last[b.length] ?? 0
}
