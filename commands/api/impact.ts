// What a record is linked with, so that a person sees before deleting it what would lose it.
import type { ApiDescription, ResourceDescription } from '../../src/client/api-description.ts'
import type { Client } from '../client/client.ts'
import { toNoun } from '../names.ts'
import { splitPath, toSingular } from '../naming.ts'

/** How much access a change is about. */
interface Effect {
  readonly identities: number
  readonly services: number
  readonly pairs: number
  readonly examples: readonly { readonly identity: { readonly name: string } }[]
}

/** What a change would do, as the controller judges it. */
export interface Impact {
  readonly loses: Effect
  readonly gains: Effect
  readonly unreachable: Effect
  readonly sessions: number
  readonly isComplete: boolean
}

const IMPACT = 'judgePolicyImpact'

/** The resources whose records decide about access: those that the controller judges the impact of. */
export function listPolicyResources({ operations, resources }: ApiDescription): ResourceDescription[] {
  const judged = operations.find(({ id }) => id === IMPACT)?.body?.schema.properties?.resource?.enum ?? []
  return judged.flatMap((plural) => resources[String(plural)] ?? [])
}

/** What deleting a record would take away, in sentences; none where nobody loses anything by it. */
export async function fetchDeletionImpact(
  client: Client,
  resource: ResourceDescription,
  id: string,
  api: ApiDescription,
): Promise<string[]> {
  if (!listPolicyResources(api).includes(resource)) return []
  return renderImpact(await fetchImpact(client, { resource: resource.plural, id }))
}

/** What a change would do, without making it; without `changes` it is a deletion. */
export async function fetchImpact(
  client: Client,
  change: { readonly resource: string; readonly id: string; readonly changes?: unknown },
): Promise<Impact> {
  const { data } = await client.call('POST', '/controller/policy/impact', change)
  return data as Impact
}

/** What a change would do, in sentences. */
export function renderImpact({ loses, gains, unreachable, sessions, isComplete }: Impact): string[] {
  const least = isComplete ? '' : 'At least '
  const sentence = (effect: Effect, verb: string) =>
    effect.pairs === 0
      ? []
      : [
          `${least}${toCountText(effect.identities, 'identity')} ${verb} ${toCountText(effect.services, 'service')}${toExampleText(effect)}.`,
        ]
  return [
    ...sentence(loses, 'would lose the right to'),
    ...sentence(unreachable, 'would have no edge router left for'),
    ...sentence(gains, 'would gain the right to'),
    ...(sessions > 0 ? [`${toCountText(sessions, 'session')} would end.`] : []),
  ]
}

function toCountText(count: number, noun: string): string {
  return `${count} ${count === 1 ? noun : noun.replace(/y$/, 'ie').concat('s')}`
}

/** A few of those whom it is about. */
function toExampleText({ examples, identities }: Effect): string {
  const names = [...new Set(examples.map(({ identity }) => identity.name))].slice(0, 3)
  return names.length === 0 ? '' : ` (${names.join(', ')}${names.length < identities ? ', …' : ''})`
}

/**
 * Every sub-list of the record that is not empty, with how many it holds: `2 service policies`. What a deletion takes along
 * and whose access ends with it is more than links tell; a controller that can say that answers in their place.
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
