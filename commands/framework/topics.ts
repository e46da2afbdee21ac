// The topics of the commands, as the build writes them for oclif: those of resources come from their definitions, the others are here.
import { loadApiDescription } from '../foundation/description.ts'

/** A topic as oclif reads it, with what the help needs besides. */
export interface Topic {
  readonly description: string
  readonly isResource?: boolean
  /** Whether it is missing in the list of topics. */
  readonly hidden?: boolean
  /** The topic of which this is another name. */
  readonly of?: string
}

const SUMMARIES: Readonly<Record<string, string>> = {
  admin: 'Restores the access of administrators, on the data directory.',
  audit: 'The audit: who changed what, and when.',
  capability: 'The capabilities of a controller.',
  circuit: 'The connections of clients with services, over routers.',
  cluster: 'Several controllers that serve one network: its directories, and their settings.',
  'current-api-session': 'Your own session.',
  'current-identity': 'Your own identity, and its authenticators.',
  database: 'Checks, repairs and snapshots of the data of a running controller.',
  db: 'The database in a data directory: backups, restores, checks and migrations.',
  events: 'What changes and happens, as it happens.',
  link: 'The connections between routers, which circuits use.',
  log: 'The log of a running controller.',
  mfa: 'Your own second factor.',
  'network-jwt': 'Tokens with which clients find and trust the network.',
  node: 'The controllers of a network: which run, and their draining before a stop.',
  permission: 'What a permission lets its holder do.',
  pki: "The controller's own certificates: renewal and rotation.",
  policy: 'Who can reach what, and why.',
  profile: 'The controllers that you work with.',
  revocation: 'Tokens, sessions and identities whose tokens routers refuse before these expire.',
  spec: 'The documents that describe the APIs.',
  'well-known-ca': 'The authorities that identify the controller.',
}

type Commands = Readonly<Record<string, { readonly aliases: readonly string[] }>>

/** The topics, by name: resources first, and other names of topics last. */
export function listTopics(commands: Commands): Record<string, Topic> {
  const names = new Set(Object.keys(commands).flatMap((id) => getNoun(id) ?? []))
  const topics: Record<string, Topic> = {}
  const resources = Object.values(loadApiDescription().resources).sort((a, b) => (a.name < b.name ? -1 : 1))
  for (const { name, summary } of resources) {
    if (names.delete(name)) topics[name] = { description: summary, isResource: true }
  }
  for (const name of [...names].sort()) topics[name] = { description: SUMMARIES[name] ?? '' }
  return { ...topics, ...listOtherNames(topics, commands) }
}

/** The nouns of aliases: plurals, and second names. */
function listOtherNames(topics: Readonly<Record<string, Topic>>, commands: Commands): Record<string, Topic> {
  const otherNames = Object.entries(commands).flatMap(([id, { aliases }]) => {
    const topic = getNoun(id)
    const nouns = topic === undefined ? [] : aliases.flatMap((alias) => getNoun(alias) ?? [])
    return nouns.filter((noun) => !topics[noun]).map((noun) => [noun, topic ?? ''] as const)
  })
  const entries = [...new Map(otherNames)].sort(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries(
    entries.map(([name, of]) => [name, { description: topics[of]?.description ?? '', of, hidden: true }]),
  )
}

/** The noun of a command; undefined if it has none. */
function getNoun(id: string): string | undefined {
  return id.includes(':') ? id.split(':')[0] : undefined
}
