// Names in place of ids: whatever a person types is looked up before it is sent.
import type { Client } from '../src/client/client.ts'
import type { Resource } from '../src/resources/define.ts'
import { resourceOf } from '../src/resources/index.ts'
import { memberName } from '../src/schema/fields.ts'
import { CommandError, EXIT } from './exit-codes.ts'

/** `id:` and `name:` say which of the two a value is. */
const FORCED = /^(id|name):([\s\S]*)$/

/**
 * The id of the record that `given` means: an exact id first, then an exact name.
 * @throws CommandError with exit code 5 where there is none, or where it is one record's id and another's name
 */
export async function resolveId(client: Client, { name, plural, fields }: Resource, given: string): Promise<string> {
  const [, forced, rest = given] = FORCED.exec(given) ?? []
  const hasNames = 'name' in fields
  const conditions = [
    ...(forced === 'name' ? [] : [`id = ${quoted(rest)}`]),
    ...(forced === 'id' || !hasNames ? [] : [`name = ${quoted(rest)}`]),
  ]
  const found = await search(client, plural, conditions.join(' or '))
  if (found.length === 1) return found[0]?.id as string
  const spoken = name.replaceAll('-', ' ')
  if (found.length > 1) {
    const message = `"${given}" is the id of one ${spoken} and the name of another`
    throw new CommandError(EXIT.notFound, 'AMBIGUOUS', message, { hint: `id:${rest} or name:${rest}` })
  }
  const near = hasNames ? await nearestNames(client, plural, rest) : []
  const hint = near.length > 0 ? near.join(', ') : `controller ${name} list`
  throw new CommandError(EXIT.notFound, 'NOT_FOUND', `${client.target}: there is no ${spoken} "${given}"`, { hint })
}

/** Replaces names by ids in the members of a body that refer to other records, also inside `@…` roles. */
export async function resolveReferences(
  client: Client,
  resource: Resource,
  body: Record<string, unknown>,
): Promise<void> {
  for (const [name, field] of Object.entries(resource.fields)) {
    const { target, roles, reference } = field.kind
    const member = memberName(name, field)
    const value = body[member]
    if (!target || value === undefined || value === null || reference?.choices) continue
    const resolve = (given: string) => resolveId(client, resourceOf(target), given)
    if (roles) {
      const entries = value as string[]
      body[member] = await Promise.all(
        entries.map(async (role) => (role.startsWith('@') ? `@${await resolve(role.slice(1))}` : role)),
      )
    } else if (Array.isArray(value)) {
      body[member] = await Promise.all((value as string[]).map(resolve))
    } else {
      body[member] = await resolve(value as string)
    }
  }
}

interface Found {
  readonly id: string
  readonly name?: string
}

async function search(client: Client, plural: string, filter: string): Promise<readonly Found[]> {
  const { data } = await client.call('GET', `/${plural}?limit=2&filter=${encodeURIComponent(filter)}`)
  return data as Found[]
}

const MOST_SUGGESTIONS = 3

async function nearestNames(client: Client, plural: string, given: string): Promise<string[]> {
  const beginning = given.slice(0, Math.max(2, Math.ceil(given.length / 2)))
  const filter = `name icontains ${quoted(beginning)} sort by name limit ${MOST_SUGGESTIONS}`
  const { data } = await client.call('GET', `/${plural}?filter=${encodeURIComponent(filter)}`)
  return (data as Found[]).flatMap(({ name }) => name ?? [])
}

function quoted(text: string): string {
  return `"${text.replace(/["\\]/g, '\\$&').replace(/\n/g, '\\n').replace(/\r/g, '\\r').replace(/\t/g, '\\t')}"`
}
