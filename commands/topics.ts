// The summaries of topics: those of resources come from their definitions, the others are here.
import { loadApiDescription } from './api/description.ts'

const SUMMARIES: Readonly<Record<string, string>> = {
  admin: 'Restores the access of administrators, on the data directory.',
  audit: 'The audit: who changed what, and when.',
  capability: 'The capabilities of a controller.',
  circuit: 'The connections of clients with services, over routers.',
  'current-api-session': 'Your own session.',
  'current-identity': 'Your own identity, and its authenticators.',
  database: 'Checks, repairs and snapshots of the data of a running controller.',
  db: 'The database in a data directory: backups, restores, checks and migrations.',
  link: 'The connections between routers, which circuits use.',
  log: 'The log of a running controller.',
  mfa: 'Your own second factor.',
  'network-jwt': 'Tokens with which clients find and trust the network.',
  pki: "The controller's own certificates: renewal and rotation.",
  policy: 'Who can reach what, and why.',
  profile: 'The controllers that you work with.',
  spec: 'The documents that describe the APIs.',
  'well-known-ca': 'The authorities that identify the controller.',
}

/** The topics of the commands, by name: resources first. */
export function listTopics(ids: readonly string[]): Record<string, { summary: string; isResource: boolean }> {
  const names = new Set(ids.flatMap((id) => (id.includes(':') ? [id.split(':')[0] ?? ''] : [])))
  const all: Record<string, { summary: string; isResource: boolean }> = {}
  const resources = Object.values(loadApiDescription().resources).sort((a, b) => (a.name < b.name ? -1 : 1))
  for (const { name, summary } of resources) {
    if (names.delete(name)) all[name] = { summary, isResource: true }
  }
  for (const name of [...names].sort()) all[name] = { summary: SUMMARIES[name] ?? '', isResource: false }
  return all
}
