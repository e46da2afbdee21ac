// Names in place of ids: whatever a person types is looked up before it is sent.
import type { ResourceDescription } from '../src/client/api-description.ts'
import type { Client } from './client/client.ts'
import { CommandError, EXIT } from './exit-codes.ts'
import { findNearest } from './nearest.ts'

/** `id:` and `name:` say which of the two a value is. */
const FORCED = /^(id|name):([\s\S]*)$/

/**
 * The id of the record that `given` means: an exact id first, then an exact name.
 * @param list the path of the list that it is looked for in; that of all records unless said otherwise
 * @throws CommandError with exit code 5 where there is none, or where it is one record's id and another's name
 */
export async function resolveId(
  client: Client,
  resource: ResourceDescription,
  given: string,
  list = `/${resource.plural}`,
): Promise<string> {
  const { name, isNamed } = resource
  const [, forced, rest = given] = FORCED.exec(given) ?? []
  const conditions = [
    ...(forced === 'name' ? [] : [`id = ${quoteText(rest)}`]),
    ...(forced === 'id' || !isNamed ? [] : [`name = ${quoteText(rest)}`]),
  ]
  const found = await search(client, list, conditions.join(' or '), 2)
  if (found.length === 1) return found[0]?.id as string
  const noun = toNoun(name)
  if (found.length > 1) {
    const isIdOfOne = found.some(({ id }) => id === rest)
    const what = isIdOfOne ? `is the id of one ${noun} and the name of another` : `is the name of more than one ${noun}`
    const hint = isIdOfOne ? `id:${rest} or name:${rest}` : `one of the ids ${found.map(({ id }) => id).join(', ')}`
    throw new CommandError(EXIT.notFound, 'AMBIGUOUS', `${client.target}: "${given}" ${what}`, { hint })
  }
  const near = isNamed ? await nearestNames(client, list, rest) : []
  const hint = near.length > 0 ? near.join(', ') : `controller ${name} list`
  throw new CommandError(EXIT.notFound, 'NOT_FOUND', `${client.target}: there is no ${noun} "${given}"`, { hint })
}

/** Replaces the name behind the `@` of a role by an id; attributes stay as they are. */
export async function resolveRole(client: Client, resource: ResourceDescription, role: string): Promise<string> {
  return role.startsWith('@') ? `@${await resolveId(client, resource, role.slice(1))}` : role
}

/** `config-type` → `config type` */
export function toNoun(name: string): string {
  return name.replaceAll('-', ' ')
}

interface NamedRecord {
  readonly id: string
  readonly name?: string
}

async function search(client: Client, list: string, filter: string, limit: number): Promise<readonly NamedRecord[]> {
  const { data } = await client.call('GET', `${list}?limit=${limit}&filter=${encodeURIComponent(filter)}`)
  return data as NamedRecord[]
}

const MAX_CANDIDATES = 200

/** Names that share a half with the one that was typed, nearest first: one slip leaves the other half as it was. */
async function nearestNames(client: Client, list: string, given: string): Promise<string[]> {
  const middle = Math.ceil(given.length / 2)
  const halves = [given.slice(0, middle), given.slice(middle)].filter((half) => half !== '')
  const condition = halves.map((half) => `name icontains ${quoteText(half)}`).join(' or ')
  const found = await search(client, list, `${condition} sort by name`, MAX_CANDIDATES)
  return findNearest(
    given,
    found.flatMap(({ name }) => name ?? []),
  )
}

function quoteText(text: string): string {
  return `"${text.replace(/["\\]/g, '\\$&').replace(/\n/g, '\\n').replace(/\r/g, '\\r').replace(/\t/g, '\\t')}"`
}
