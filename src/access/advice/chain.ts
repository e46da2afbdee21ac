// The advice on an identity and a service: the links between them, in order, each with its outcome and its remedy.
import type { RoleBearer } from '../../policy/role-selector.ts'

export interface NamedRecord {
  readonly id: string
  readonly name: string
}

/** A record with what policies know it by. */
export type NamedRoleBearer = NamedRecord & RoleBearer

export type LinkName =
  | 'identity'
  | 'auth-policy'
  | 'service-policy'
  | 'posture'
  | 'edge-router-policy'
  | 'service-edge-router-policy'
  | 'common-router'
  | 'terminator'

/** `unknown`: no subsystem can tell; never taken for passed. */
type LinkOutcome = 'passed' | 'failed' | 'unknown'

/** A policy that makes a link, and the roles by which it does. */
export interface DecidingPolicy extends NamedRecord {
  readonly subjectRoles: readonly string[]
  /** Absent if the policy leads to many records; these are listed next to it. */
  readonly objectRoles?: readonly string[]
  /** Names of the edge routers it leads to. */
  readonly edgeRouters?: readonly string[]
}

/** A policy that comes close to making a link, and the attributes that are missing for it. */
export interface NearestMiss {
  readonly policy: NamedRecord
  /** By the record that lacks them: its name and the attributes; `null` if the policy would have to name it. */
  readonly lacking: readonly { readonly record: string; readonly attributes: readonly string[] | null }[]
}

/** A change of one record. */
export interface Remedy {
  readonly operation: 'create' | 'update' | 'enable' | 'refresh'
  /** The plural name of the resource. */
  readonly resource: string
  /** The record to change; absent for `create`. A record without a name is known by its id alone. */
  readonly record?: { readonly id: string; readonly name?: string }
  /** The members that the request sends. */
  readonly values?: Readonly<Record<string, unknown>>
  /** By member: entries that a set of the record gets besides those that it has. */
  readonly adds?: Readonly<Record<string, readonly string[]>>
  /** The records that values and entries name by their ids. */
  readonly references?: readonly NamedRecord[]
  /** The access that it opens besides this service to this identity; absent if it does not concern policies. */
  readonly alsoOpens?: OpenedAccess
}

/** The access that a change opens besides what it is for. */
export interface OpenedAccess {
  /** How many other identities gain access. */
  readonly otherIdentities: number
  /** How many other services gain an identity. */
  readonly otherServices: number
  /** Whether every identity was judged; in a large network only some thousands are. */
  readonly isComplete: boolean
}

/** The result of a posture check on the machine of the identity. */
export interface PostureCheckFinding extends NamedRecord {
  readonly evidence: string
  /** The reason, in one sentence without a full stop. */
  readonly message: string
  /** The report of the machine; null if it reported nothing. */
  readonly reported: unknown
}

export interface AdviceLink {
  readonly link: LinkName
  readonly outcome: LinkOutcome
  /** One sentence, without a full stop. */
  readonly message: string
  readonly policies?: readonly DecidingPolicy[]
  readonly postureChecks?: readonly PostureCheckFinding[]
  readonly edgeRouters?: readonly (NamedRecord & { readonly presence: string })[]
  readonly terminators?: readonly {
    readonly id: string
    readonly address: string
    readonly health: string
    /** The name of the router that connects to the address. */
    readonly router: string
    /** The name of the identity that hosts; null if an administrator made the terminator. */
    readonly host: string | null
  }[]
  /** Identities that may host the service, and do not: advice on them says why. */
  readonly hosts?: readonly NamedRecord[]
  /** A problem that exists although the link passed, in one sentence without a full stop. */
  readonly warning?: string
  /** The step to take outside of the controller, if no change of a record repairs the link. */
  readonly hint?: string
  readonly nearestMiss?: NearestMiss
  /** The change that repairs the link and opens the least besides it. */
  readonly remedy?: Remedy
  /** Other changes, each of which repairs the link. */
  readonly alternatives?: readonly Remedy[]
  /** The changes that come next, if no single one repairs the link. */
  readonly next?: readonly Remedy[]
}

export interface Advice {
  readonly identity: NamedRecord
  readonly service: NamedRecord
  readonly type: 'Dial' | 'Bind'
  /** `denied` as soon as one link failed; `unknown` if none did, and not all passed. */
  readonly verdict: 'allowed' | 'denied' | 'unknown'
  readonly links: readonly AdviceLink[]
}

export function toVerdict(links: readonly AdviceLink[]): Advice['verdict'] {
  if (links.some(({ outcome }) => outcome === 'failed')) return 'denied'
  return links.every(({ outcome }) => outcome === 'passed') ? 'allowed' : 'unknown'
}

const MAX_LISTED_WORDS = 5

/** "a", "a and b", "a, b and c"; more than a few are counted. */
export function toSentenceList(words: readonly string[]): string {
  const more = words.length - MAX_LISTED_WORDS
  const visibleWords = more > 0 ? [...words.slice(0, MAX_LISTED_WORDS - 1), `${more + 1} more`] : words
  return visibleWords.length < 2
    ? (visibleWords[0] ?? '')
    : `${visibleWords.slice(0, -1).join(', ')} and ${visibleWords.at(-1)}`
}
