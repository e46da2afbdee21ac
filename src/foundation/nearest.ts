// Suggestions for a mistyped word.
import { computeEditDistance } from './edit-distance.ts'

/** At most three candidates that are similar to the word, the most similar first. */
export function findNearest(word: string, candidates: Iterable<string>): string[] {
  const lowerCaseWord = word.toLowerCase()
  const maxDistance = Math.max(1, Math.ceil(word.length / 3))
  return [...new Set(candidates)]
    .map((candidate) => ({ candidate, distance: computeDistance(lowerCaseWord, candidate.toLowerCase()) }))
    .filter(({ distance }) => distance <= maxDistance)
    .sort(
      (a, b) =>
        a.distance - b.distance ||
        // Of those that begin with the word, the shortest.
        a.candidate.length - b.candidate.length ||
        (a.candidate < b.candidate ? -1 : 1),
    )
    .slice(0, 3)
    .map(({ candidate }) => candidate)
}

/** The end of a sentence: what a word most likely stands for; empty if nothing is similar. */
export function suggestNearest(word: string, candidates: Iterable<string>): string {
  const near = findNearest(word, candidates)
  return near.length > 0 ? `: did you mean ${near.join(' or ')}?` : ''
}

/** The Damerau-Levenshtein distance, but 1 if the candidate begins with the word. */
function computeDistance(word: string, candidate: string): number {
  if (word.length >= 2 && candidate.startsWith(word)) return 1
  return computeEditDistance(word, candidate)
}
