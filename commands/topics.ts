// What the topics are about: a resource says it itself, the others stand here.
import { loadApiDescription } from './api/description.ts'

const SUMMARIES: Readonly<Record<string, string>> = {
  admin: 'The administrators of this data directory, when none can sign in anymore.',
  audit: 'Who changed what.',
  capability: 'What a controller can be able to do.',
  'current-api-session': 'Your own session.',
  'current-identity': 'Your own identity, and its authenticators.',
  database: 'Checks, repairs and snapshots of the data of a running controller.',
  db: 'The database in a data directory, while no controller runs on it.',
  mfa: 'Your own second factor.',
  'network-jwt': 'Tokens by which clients find and trust the network.',
  policy: 'Who may reach what, and why not.',
  profile: 'The controllers that you work with.',
  spec: 'The documents that describe the APIs.',
  'well-known-ca': 'The authorities by which the controller is recognised.',
}

/** Every topic of these commands, by name: resources first. */
export function listTopics(ids: readonly string[]): Record<string, { summary: string; isResource: boolean }> {
  const found = new Set(ids.flatMap((id) => (id.includes(':') ? [id.split(':')[0] ?? ''] : [])))
  const all: Record<string, { summary: string; isResource: boolean }> = {}
  const resources = Object.values(loadApiDescription().resources).sort((a, b) => (a.name < b.name ? -1 : 1))
  for (const { name, summary } of resources) {
    if (found.delete(name)) all[name] = { summary, isResource: true }
  }
  for (const name of [...found].sort()) all[name] = { summary: SUMMARIES[name] ?? '', isResource: false }
  return all
}
