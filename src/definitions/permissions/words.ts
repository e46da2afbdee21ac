// The words of permissions: what identities that do not administer may do, as administrators grant it. Data only.
//
// A word gives rights. A right is the permission that an operation states: the name of what it acts on, and an action. Most words
// are those of OpenZiti 2.0; the roles at the end are this controller's own.

import type { Objection } from '../schema/field.ts'

const ACTIONS = ['read', 'create', 'update', 'delete'] as const
export type Action = (typeof ACTIONS)[number]

interface WordFamily {
  /** The names, in permissions of operations, of what the word is about. */
  readonly of: readonly string[]
  readonly actions?: readonly Action[]
  /** Rights besides, by the action that implies them. */
  readonly besides?: Readonly<Partial<Record<Action, readonly string[]>>>
  /** Whether records can be owned by a role attribute, and not by a tag only. */
  readonly hasRoles?: boolean
}

/** By a word: what it is about. The word alone gives every action, and `WORD.ACTION` gives one. */
const families: Readonly<Record<string, WordFamily>> = {
  'auth-policy': { of: ['auth-policy'] },
  ca: { of: ['ca'] },
  config: { of: ['config'] },
  'config-type': { of: ['config-type'] },
  controllers: { of: ['controller'], actions: ['read'] },
  'edge-router-policy': { of: ['edge-router-policy'] },
  enrollment: { of: ['enrollment'] },
  'external-jwt-signer': { of: ['external-jwt-signer'] },
  identity: {
    of: ['identity'],
    besides: { read: ['identity-type.read'], update: ['identity.support'] },
    hasRoles: true,
  },
  ops: { of: ['api-session', 'circuit', 'link', 'session'], actions: ['read', 'update', 'delete'] },
  'posture-check': { of: ['posture-check'], besides: { read: ['posture-check-type.read'] }, hasRoles: true },
  router: { of: ['edge-router', 'router'], hasRoles: true },
  service: { of: ['service'], hasRoles: true },
  'service-edge-router-policy': { of: ['service-edge-router-policy'] },
  'service-policy': { of: ['service-policy'] },
  terminator: { of: ['terminator'] },
  token: { of: ['token'], actions: ['read', 'create', 'delete'] },
}

/** Words whose records cannot be owned, because records of several kinds are behind one word. */
const UNOWNED: ReadonlySet<string> = new Set(['controllers', 'ops'])

/** The right to read whatever an operation with the action `read` shows. */
export const READ_EVERYTHING = '*.read'

/** Records that only administrators read. */
export const READ_BY_ADMINISTRATORS: ReadonlySet<string> = new Set(['database.read', 'summary.read'])

/** Words that stand for a task. */
const roles: Readonly<Record<string, readonly string[]>> = {
  admin_readonly: [READ_EVERYTHING],
  'help-desk': [
    ...['enrollment.read', 'enrollment.update', 'identity.read', 'identity.support', 'identity-type.read'],
    ...['policy.read', 'service.read'],
  ],
  'router-operator': [
    ...listRights(families.router as WordFamily, ACTIONS),
    ...listRights({ of: ['circuit', 'link'] }, ACTIONS),
    'terminator.read',
  ],
}

function listRights({ of, actions = ACTIONS, besides = {} }: WordFamily, wanted: readonly Action[]): readonly string[] {
  return wanted
    .filter((action) => actions.includes(action))
    .flatMap((action) => [...of.map((name) => `${name}.${action}`), ...(besides[action] ?? [])])
}

/** Word → its rights on all records. */
const rightsByWord: ReadonlyMap<string, readonly string[]> = new Map([
  ...Object.entries(families).flatMap(([word, family]): [string, readonly string[]][] => [
    [word, listRights(family, ACTIONS)],
    ...(family.actions ?? ACTIONS).map((action): [string, readonly string[]] => [
      `${word}.${action}`,
      listRights(family, [action]),
    ]),
  ]),
  ...Object.entries(roles),
])

/** The words that can be granted as they are. Others name the records that they are about, after a colon. */
export const permissionWords: readonly string[] = [...rightsByWord.keys()].sort()

/** The records that a word is about: those with a role attribute, or with a tag of this value. */
export type RecordScope = { readonly attribute: string } | { readonly tag: string; readonly value: string }

/** The objection to a list of words: the first that is not a permission. */
export function checkWords(words: readonly string[]): Objection | undefined {
  const unknown = words.find((word) => !parseWord(word))
  return unknown === undefined ? undefined : { reason: 'has an entry that is not a permission', value: unknown }
}

/** The rights that a word gives, on all records or on those in its scope. */
export interface WordRights {
  readonly word: string
  readonly rights: readonly string[]
  readonly scope?: RecordScope
}

const SCOPED = /^([^:]+):(?:#(.+)|([^#=][^=]*)=(.+))$/s

/** Returns what a word gives; undefined if it is not a permission. `service:#web` owns services with a role, `service:team=web` with a tag. */
export function parseWord(word: string): WordRights | undefined {
  const rights = rightsByWord.get(word)
  if (rights) return { word, rights }
  const [, subject = '', attribute, tag, value = ''] = SCOPED.exec(word) ?? []
  const [familyName = ''] = subject.split('.')
  const family = Object.hasOwn(families, familyName) ? families[familyName] : undefined
  const all = rightsByWord.get(subject)
  if (!family || !all || UNOWNED.has(familyName)) return undefined
  // Types are the same for every caller.
  const own = all.filter((right) => !right.includes('-type.') || family.of.includes(right.slice(0, right.indexOf('.'))))
  if (attribute !== undefined) return family.hasRoles ? { word, rights: own, scope: { attribute } } : undefined
  return tag === undefined ? undefined : { word, rights: own, scope: { tag, value } }
}
