// Suggestions for a mistyped word.
import { computeEditDistance } from '../src/edit-distance.ts'

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
