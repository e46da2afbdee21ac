// Shows the impact of a deletion or a change before it is made.
import type { ApiDescription, OperationDescription, ResourceDescription } from '../../src/client/api-description.ts'
import type { Client } from '../client/client.ts'
import { toNoun } from '../client/names.ts'
import { splitPath, toSingular } from '../foundation/naming.ts'
import type { PreparedRequest } from './task.ts'

/** The amount of access that a change affects. */
interface Effect {
  readonly identities: number
  readonly services: number
  readonly pairs: number
  readonly examples: readonly { readonly identity: { readonly name: string } }[]
}

/** The amount of access that a change affects, and that posture blocks at the moment. */
interface BlockedEffect extends Effect {
  readonly examples: readonly {
    readonly identity: { readonly name: string }
    readonly blockedBy: readonly { readonly name: string }[]
  }[]
}

/** The impact of a change on access, as the controller computes it. */
export interface ReportedImpact {
  readonly loses: Effect
  readonly gains: Effect
  readonly blockedLosses: BlockedEffect
  readonly blockedGains: BlockedEffect
  readonly unreachable: Effect
  readonly sessions: number
  readonly gates: readonly {
    readonly policy: { readonly name: string }
    readonly identities: number
    readonly remainingChecks: number
  }[]
  readonly isComplete: boolean
}

const IMPACT_OPERATION_ID = 'judgePolicyImpact'

/** The resources that affect access: those for which the controller computes the impact. */
export function listPolicyResources({ operations, resources }: ApiDescription): ResourceDescription[] {
  const plurals = operations.find(({ id }) => id === IMPACT_OPERATION_ID)?.body?.schema.properties?.resource?.enum ?? []
  return plurals.flatMap((plural) => resources[String(plural)] ?? [])
}

/** The impact of deleting a record, in sentences; empty if access does not change. */
export async function fetchDeletionImpact(
  client: Client,
  resource: ResourceDescription,
  id: string,
  api: ApiDescription,
): Promise<string[]> {
  if (!listPolicyResources(api).includes(resource)) return []
  return renderImpact(await fetchImpact(client, { resource: resource.plural, id }))
}

/** The impact of a request on access; undefined if it concerns no policy. */
export async function fetchRequestImpact(
  client: Client,
  { method, path }: OperationDescription,
  { ids, body }: PreparedRequest,
  api: ApiDescription,
): Promise<ReportedImpact | undefined> {
  const [plural = '', parameter, ...rest] = splitPath(path)
  const isOfRecord = rest.length === 0 && listPolicyResources(api).some((resource) => resource.plural === plural)
  if (!isOfRecord) return undefined
  const id = parameter === undefined ? null : (ids[parameter.slice(1)] ?? '')
  return fetchImpact(client, { resource: plural, id, ...(method === 'DELETE' ? {} : { changes: body }) })
}

/** The impact of a change; of a deletion if there are no `changes`, of a new record if there is no id. */
export async function fetchImpact(
  client: Client,
  change: { readonly resource: string; readonly id: string | null; readonly changes?: unknown },
): Promise<ReportedImpact> {
  const { data } = await client.call('POST', '/controller/policy/impact', change)
  return data as ReportedImpact
}

/** The impact in sentences; empty if access does not change. */
export function renderImpact(impact: ReportedImpact): string[] {
  const { loses, gains, blockedLosses, blockedGains, unreachable, sessions, gates, isComplete } = impact
  const prefix = isComplete ? '' : 'At least '
  const sentence = (effect: Effect, verb: string, condition = '') =>
    effect.pairs === 0
      ? []
      : [
          `${prefix}${toCountText(effect.identities, 'identity')} ${verb} ${toCountText(effect.services, 'service')}${nameExamples(effect)}${condition}.`,
        ]
  const pronoun = blockedGains.identities === 1 ? 'it passes' : 'they pass'
  const opened = gates.map(({ policy, identities, remainingChecks }) => {
    const rest = remainingChecks === 0 ? 'no posture check' : `only ${toCountText(remainingChecks, 'posture check')}`
    return `The policy ${policy.name} would demand ${rest} of ${prefix.toLowerCase()}${toCountText(identities, 'identity')}.`
  })
  return [
    ...opened,
    ...sentence(loses, 'would lose the right to'),
    ...sentence(blockedLosses, 'would lose the right to', `, which ${nameChecks(blockedLosses)} blocks at the moment`),
    ...sentence(unreachable, 'would have no edge router left for'),
    ...sentence(gains, 'would gain the right to'),
    ...sentence(blockedGains, 'would gain the right to', `, once ${pronoun} ${nameChecks(blockedGains)}`),
    ...(sessions > 0 ? [`${toCountText(sessions, 'session')} would end.`] : []),
  ]
}

/** Returns a number with its noun, such as `2 identities`. */
export function toCountText(count: number, noun: string): string {
  return `${count} ${count === 1 ? noun : noun.replace(/y$/, 'ie').concat('s')}`
}

/** The names of some affected identities, in brackets. */
function nameExamples({ examples, identities }: Effect): string {
  const names = [...new Set(examples.map(({ identity }) => identity.name))].slice(0, 3)
  return names.length === 0 ? '' : ` (${names.join(', ')}${names.length < identities ? ', …' : ''})`
}

/** The names of some posture checks that block an effect. */
function nameChecks({ examples }: BlockedEffect): string {
  const names = [...new Set(examples.flatMap(({ blockedBy }) => blockedBy.map(({ name }) => name)))]
  return `${names.slice(0, 3).join(', ')}${names.length > 3 ? ', …' : ''}`
}

/**
 * The sub-lists of the record that are not empty, with their counts: `2 service policies`.
 */
export async function listLinkedRecords(
  client: Client,
  { plural }: ResourceDescription,
  id: string,
  api: ApiDescription,
): Promise<string[]> {
  const lists = api.operations.filter(({ method, path, returns, query }) => {
    const [head, parameter, word, ...rest] = splitPath(path)
    const isSubList = head === plural && parameter === ':id' && word !== undefined && rest.length === 0
    return isSubList && method === 'GET' && returns.kind === 'list' && query?.limit !== undefined
  })
  const counts = await Promise.all(
    lists.map(async ({ path }) => {
      const { data, meta } = await client.call('GET', `${path.replace(':id', encodeURIComponent(id))}?limit=1`)
      const count = meta.pagination?.totalCount ?? (data as unknown[]).length
      const word = splitPath(path).at(-1) ?? ''
      const noun = count === 1 ? (api.resources[word]?.name ?? toSingular(word)) : word
      return { count, noun: toNoun(noun) }
    }),
  )
  return counts.filter(({ count }) => count > 0).map(({ count, noun }) => `${count} ${noun}`)
}
