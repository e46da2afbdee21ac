// From a resource to its commands: create, list, get, update and delete, by one mechanism for all of them.
import { Args, Flags } from '@oclif/core'
import type { Client } from '../src/client/client.ts'
import type { Resource, Verb } from '../src/resources/define.ts'
import { type CommandClass, connectedCommand, type GivenFlags } from './connected.ts'
import { CommandError, EXIT } from './exit-codes.ts'
import { bodyFromFlags, fieldFlags, flagName } from './field-flags.ts'
import { resolveId, resolveReferences } from './names.ts'
import type { Result } from './output/formats.ts'
import type { Column } from './output/table.ts'

type Entity = Record<string, unknown>

/** The commands of a resource by id, `service:create` and so on; only those whose operations exist. */
export function resourceCommands(resource: Resource): Record<string, CommandClass> {
  const entries = resource.verbs.flatMap((verb) => {
    const word = WORDS[verb]
    return word ? [[`${resource.name}:${word}`, MAKERS[word](resource, `${resource.plural}:${word}`)]] : []
  })
  return Object.fromEntries(entries)
}

type Word = 'create' | 'list' | 'get' | 'update' | 'delete'

const WORDS: Partial<Record<Verb, Word>> = {
  create: 'create',
  list: 'list',
  detail: 'get',
  patch: 'update',
  delete: 'delete',
}

const MAKERS: Readonly<Record<Word, (resource: Resource, alias: string) => CommandClass>> = {
  create: createCommand,
  list: listCommand,
  get: getCommand,
  update: updateCommand,
  delete: deleteCommand,
}

function createCommand(resource: Resource, alias: string): CommandClass {
  const name = Args.string({ required: true, description: `Name of the new ${spoken(resource)}.`, name: 'NAME' })
  return connectedCommand({
    summary: `Create ${article(resource)} ${spoken(resource)}.`,
    aliases: [alias],
    ...('name' in resource.fields ? { args: { name } } : {}),
    flags: fieldFlags(resource, 'create'),
    example: exampleOf(resource),
    async run({ client, args, flags, print, notice }) {
      const { body, assumed } = bodyFromFlags(resource, 'create', withEnrollment(flags))
      if (args.name !== undefined) body.name = args.name
      await resolveReferences(client, resource, body)
      const { data } = await client.call('POST', `/${resource.plural}`, body)
      const entity = await fetchEntity(client, resource, (data as { id: string }).id)
      const said = assumed.length > 0 ? ` (${assumed.join(', ')})` : ''
      notice(`Created ${spoken(resource)} ${String(entity.name ?? entity.id)}${said}.`)
      await print({ kind: 'entity', entity, columns: columnsOf(resource) })
    },
  })
}

/** Asking for the JWT is asking for the enrollment it comes from. */
function withEnrollment(flags: GivenFlags): GivenFlags {
  const isNamed = flags.ott !== undefined || flags.ottca !== undefined || flags.updb !== undefined
  return flags.output === 'jwt' && !isNamed ? { ...flags, ott: true } : flags
}

function listCommand(resource: Resource, alias: string): CommandClass {
  return connectedCommand({
    summary: `List ${spokenPlural(resource)}.`,
    aliases: [alias],
    flags: {
      filter: Flags.string({ description: 'Which records, in the query language; see the example.' }),
      sort: Flags.string({ description: 'By which fields, such as: name desc, createdAt.' }),
      limit: Flags.integer({ description: 'At most so many; all of them unless said otherwise.', min: 1 }),
    },
    example: `--filter '${resource.example.filter}'`,
    async run({ client, flags, print, notice }) {
      const limit = flags.limit as number | undefined
      const { items, total } = await fetchAll(client, resource, flags, limit)
      await print({ kind: 'list', resource: resource.plural, items, columns: columnsOf(resource) })
      if (limit !== undefined && total > items.length) notice(`Showing ${items.length} of ${total}.`)
    },
  })
}

function getCommand(resource: Resource, alias: string): CommandClass {
  return connectedCommand({
    summary: `Show one ${spoken(resource)}.`,
    aliases: [alias],
    args: recordArgs(resource),
    example: `${exampleName(resource)} -o json`,
    async run({ client, args, flags, print }) {
      const id = await resolveId(client, resource, args.record ?? '')
      const entity = await fetchEntity(client, resource, id)
      const isTable = (flags.output ?? 'table') === 'table'
      await print(isTable ? memberList(entity) : { kind: 'entity', entity, columns: [] })
    },
  })
}

function updateCommand(resource: Resource, alias: string): CommandClass {
  return connectedCommand({
    summary: `Change one ${spoken(resource)}: only what the flags name.`,
    aliases: [alias],
    args: recordArgs(resource),
    flags: fieldFlags(resource, 'update'),
    example: `${exampleName(resource)} --tag site=north`,
    async run({ client, args, flags, print, notice }) {
      const { body } = bodyFromFlags(resource, 'update', flags)
      if (Object.keys(body).length === 0) {
        throw new CommandError(EXIT.usage, 'USAGE', 'nothing to change: name at least one flag')
      }
      const id = await resolveId(client, resource, args.record ?? '')
      await resolveReferences(client, resource, body)
      await client.call('PATCH', pathOf(resource, id), body)
      const entity = await fetchEntity(client, resource, id)
      notice(`Updated ${spoken(resource)} ${String(entity.name ?? id)}.`)
      await print({ kind: 'entity', entity, columns: columnsOf(resource) })
    },
  })
}

function deleteCommand(resource: Resource, alias: string): CommandClass {
  return connectedCommand({
    summary: `Delete one ${spoken(resource)}.`,
    aliases: [alias],
    args: recordArgs(resource),
    flags: { yes: Flags.boolean({ char: 'y', description: 'Do not ask.' }) },
    example: `${exampleName(resource)} --yes`,
    async run({ client, args, print, confirm }) {
      const id = await resolveId(client, resource, args.record ?? '')
      await confirm(`Delete the ${spoken(resource)} ${args.record}?`)
      await client.call('DELETE', pathOf(resource, id))
      const sentence = `Deleted ${spoken(resource)} ${args.record}.`
      await print({ kind: 'done', sentence, facts: { deleted: true, id } })
    },
  })
}

// ---- records ----------------------------------------------------------------------------------------------------------

const PAGE = 500

function pathOf(resource: Resource, id: string): string {
  return `/${resource.plural}/${encodeURIComponent(id)}`
}

async function fetchEntity(client: Client, resource: Resource, id: string): Promise<Entity> {
  const { data } = await client.call('GET', pathOf(resource, id))
  return data as Entity
}

/** All pages of a list, or as many records as `limit` says. */
async function fetchAll(client: Client, resource: Resource, flags: GivenFlags, limit = Number.POSITIVE_INFINITY) {
  const items: Entity[] = []
  let total = 0
  do {
    const wanted = Math.min(PAGE, limit - items.length)
    const query = new URLSearchParams({ offset: String(items.length), limit: String(wanted) })
    if (typeof flags.filter === 'string') query.set('filter', flags.filter)
    if (typeof flags.sort === 'string') query.set('sort', flags.sort)
    const { data, meta } = await client.call('GET', `/${resource.plural}?${query}`)
    const page = data as Entity[]
    total = meta.pagination?.totalCount ?? page.length
    items.push(...page)
    if (page.length < wanted) break
  } while (items.length < Math.min(total, limit))
  return { items, total }
}

// ---- output -----------------------------------------------------------------------------------------------------------

/** What `list` shows: stored fields, and for references the name of what they point at. */
function columnsOf(resource: Resource): Column[] {
  return resource.columns.map((name) => {
    const as = resource.fields[name]?.kind.reference?.as
    return { title: name, value: (entity) => (as ? (entity[as] ?? entity[name]) : entity[name]) }
  })
}

/** A record as a table of its members, for people. */
function memberList(entity: Entity): Result {
  const items = Object.entries(entity)
    .filter(([name]) => name !== '_links')
    .map(([name, value]) => ({ name, value }))
  const columns: Column[] = [
    { title: 'member', value: (row) => row.name },
    { title: 'value', value: (row) => row.value },
  ]
  return { kind: 'list', resource: 'members', items, columns }
}

// ---- words ------------------------------------------------------------------------------------------------------------

function recordArgs(resource: Resource) {
  return {
    record: Args.string({ required: true, description: `Name or id of the ${spoken(resource)}.`, name: 'NAME' }),
  }
}

function spoken(resource: Resource): string {
  return resource.name.replaceAll('-', ' ')
}

function spokenPlural(resource: Resource): string {
  return resource.plural.replaceAll('-', ' ')
}

function article(resource: Resource): string {
  return /^[aeiou]/.test(resource.name) ? 'an' : 'a'
}

function exampleName(resource: Resource): string {
  return String(resource.example.create.name ?? 'ID')
}

/** The example of the definition as the rest of a command line. */
function exampleOf(resource: Resource): string {
  const { name = '', ...rest } = resource.example.create
  return [String(name), ...Object.entries(rest).flatMap(([member, value]) => exampleFlag(member, value))].join(' ')
}

function exampleFlag(member: string, value: unknown): string[] {
  const flag = `--${flagName(member)}`
  if (Array.isArray(value)) return value.map((one) => `${flag} ${shellWord(String(one))}`)
  if (typeof value === 'boolean') return value ? [flag] : []
  return [`${flag} ${shellWord(typeof value === 'object' ? JSON.stringify(value) : String(value))}`]
}

function shellWord(text: string): string {
  return /^[\w.@:/-]+$/.test(text) ? text : `'${text}'`
}
