// What a person may have meant: the known words nearest to the one that was typed.

/** At most three of `known`, the nearest first; none that is another word altogether. */
export function findNearest(given: string, known: Iterable<string>): string[] {
  const wanted = given.toLowerCase()
  const farthest = Math.max(1, Math.ceil(given.length / 3))
  return [...new Set(known)]
    .map((word) => ({ word, distance: distanceTo(wanted, word.toLowerCase()) }))
    .filter(({ distance }) => distance <= farthest)
    .sort((a, b) => a.distance - b.distance || (a.word < b.word ? -1 : 1))
    .slice(0, 3)
    .map(({ word }) => word)
}

/** A word that goes on is near; else as many letters as have to be changed, added, left out or swapped (Damerau). */
function distanceTo(given: string, word: string): number {
  if (given.length >= 2 && word.startsWith(given)) return 1
  return editDistance(given, word)
}

function editDistance(a: string, b: string): number {
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
