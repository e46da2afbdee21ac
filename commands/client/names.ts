// Resolves the names that a user types to ids.
import type { ResourceDescription } from '../../src/client/api-description.ts'
import { findNearest } from '../../src/foundation/nearest.ts'
import { loadApiDescription } from '../foundation/description.ts'
import { CommandError, EXIT } from '../foundation/exit-codes.ts'
import type { Client } from './client.ts'

/** The prefixes `id:` and `name:` state which of the two a value is. */
const PREFIXED = /^(id|name):([\s\S]*)$/

/**
 * The id of the record that has `text` as its id or name; for a record without a name, also as the name of its identity.
 * @param list the path of the list to search. Default: the list of all records
 * @throws CommandError with exit code 5 if there is no such record, or more than one
 */
export async function resolveId(
  client: Client,
  resource: ResourceDescription,
  text: string,
  list = resource.path,
): Promise<string> {
  const { name, isNamed } = resource
  const [, prefix, rest = text] = PREFIXED.exec(text) ?? []
  const conditions = [
    ...(prefix === 'name' ? [] : [`id = ${quoteText(rest)}`]),
    ...(prefix === 'id' || !isNamed ? [] : [`name = ${quoteText(rest)}`]),
  ]
  const searched = await searchRecords(client, list, conditions.join(' or '), 2)
  const records = searched.length > 0 || prefix === 'id' ? searched : await findOwned(client, resource, rest, list)
  if (records.length === 1) return records[0]?.id as string
  const noun = toNoun(name)
  if (records.length > 1) {
    const isIdOfOne = records.some(({ id }) => id === rest)
    const problem = isIdOfOne
      ? `is the id of one ${noun} and the name of another`
      : isNamed
        ? `is the name of more than one ${noun}`
        : `has more than one ${noun}`
    const hint = isIdOfOne ? `id:${rest} or name:${rest}` : `one of the ids ${records.map(({ id }) => id).join(', ')}`
    throw new CommandError(EXIT.notFound, 'AMBIGUOUS', `${client.target}: "${text}" ${problem}`, { hint })
  }
  const near = isNamed ? await findNearestNames(client, list, rest) : []
  const hint = near.length > 0 ? near.join(', ') : `controller ${name} list`
  throw new CommandError(EXIT.notFound, 'NOT_FOUND', `${client.target}: there is no ${noun} "${text}"`, { hint })
}

/** The records without names that belong to the identity with this name. */
async function findOwned(
  client: Client,
  { ownerSymbol }: ResourceDescription,
  name: string,
  list: string,
): Promise<readonly FoundRecord[]> {
  if (ownerSymbol === undefined || list.split('/').length > 2) return []
  const [identity] = await searchRecords(client, '/identities', `name = ${quoteText(name)}`, 1)
  return identity ? searchRecords(client, list, `${ownerSymbol} = ${quoteText(identity.id)}`, MAX_OWNED) : []
}

// As many as the error for an ambiguous name lists.
const MAX_OWNED = 5

/** The id of the record that has `text` as its id or name, as a part of a path. @throws CommandError like `resolveId` */
export async function resolvePathId(client: Client, plural: string, text = ''): Promise<string> {
  const resource = loadApiDescription().resources[plural]
  return resource ? encodeURIComponent(await resolveId(client, resource, text)) : text
}

/** Replaces the name after the `@` of a role by an id; role attributes are returned unchanged. */
export async function resolveRole(client: Client, resource: ResourceDescription, role: string): Promise<string> {
  return role.startsWith('@') ? `@${await resolveId(client, resource, role.slice(1))}` : role
}

/** `config-type` → `config type` */
export function toNoun(name: string): string {
  return name.replaceAll('-', ' ')
}

interface FoundRecord {
  readonly id: string
  readonly name?: string
}

async function searchRecords(
  client: Client,
  list: string,
  filter: string,
  limit: number,
): Promise<readonly FoundRecord[]> {
  const { data } = await client.call('GET', `${list}?limit=${limit}&filter=${encodeURIComponent(filter)}`)
  return data as FoundRecord[]
}

const MAX_CANDIDATES = 200

/** A filter on values that contain one half of the text: a single typing error leaves the other half intact. */
export function toSimilarityFilter(symbol: string, text: string): string {
  const middle = Math.ceil(text.length / 2)
  const halves = [text.slice(0, middle), text.slice(middle)].filter((half) => half !== '')
  return halves.map((half) => `${symbol} icontains ${quoteText(half)}`).join(' or ')
}

/** Names that are similar to the text, nearest first. */
async function findNearestNames(client: Client, list: string, text: string): Promise<string[]> {
  const filter = `${toSimilarityFilter('name', text)} sort by name`
  const records = await searchRecords(client, list, filter, MAX_CANDIDATES)
  return findNearest(
    text,
    records.flatMap(({ name }) => name ?? []),
  )
}

/** The text as the query language quotes it. */
export function quoteText(text: string): string {
  return `"${text.replace(/["\\]/g, '\\$&').replace(/\n/g, '\\n').replace(/\r/g, '\\r').replace(/\t/g, '\\t')}"`
}
