// Names what records refer to by id, for people: the API has ids alone if its records are in the form that old clients know.
import type { ApiDescription, ResourceDescription } from '../../src/client/api-description.ts'
import type { Client } from '../client/client.ts'
import { RequestError } from '../foundation/request-error.ts'
import type { CommandRun } from '../framework/connected.ts'
import type { OutputRecord } from '../terminal/cells.ts'
import { findReferencedResource } from './arguments.ts'
import { setAt } from './body.ts'
import { getAt, listBodyFlags } from './body-flags.ts'

/** A member of records that holds ids. */
interface IdMember {
  readonly path: readonly string[]
  readonly resource: ResourceDescription
}

/** Whether the output is for people, who do not know ids. */
export function isForPeople({ flags }: Pick<CommandRun, 'flags'>): boolean {
  const { output, query } = flags
  return query === undefined && (output === undefined || output === 'table' || output === 'wide')
}

/** The member with the reference itself, for a column with the id of a record that has a name: `identity` for `identityId`. */
export function toReferenceColumn(column: string, api: ApiDescription): string {
  return findReferencedResource(column, api)?.isNamed ? toReferenceMember(column) : column
}

function toReferenceMember(member: string): string {
  return member.replace(/Id$/, '')
}

/**
 * The records with a reference beside each id, and a display list beside each set of ids. Ids whose names the caller may not
 * read stay alone.
 * @param plural the resource of the records
 */
export async function addReferenceNames(
  records: readonly OutputRecord[],
  plural: string,
  api: ApiDescription,
  client: Client,
): Promise<OutputRecord[]> {
  const sets = listSetMembers(plural, api)
  const listMembers = (record: OutputRecord) => [...listSingleMembers(record, api), ...sets]
  const idsByPlural = new Map<string, Set<string>>()
  for (const record of records) {
    for (const { path, resource } of listMembers(record)) {
      const ids = idsByPlural.get(resource.plural) ?? new Set()
      for (const id of [getAt(record, path) ?? []].flat()) ids.add(String(id))
      if (ids.size > 0) idsByPlural.set(resource.plural, ids)
    }
  }
  const names = new Map<string, string>()
  for (const [referenced, ids] of idsByPlural) await fetchNames(referenced, [...ids], client, names)
  return records.map((record) => withNames(record, listMembers(record), names))
}

/** The members of a record with one id each, besides which the API has no reference. */
function listSingleMembers(record: OutputRecord, api: ApiDescription): IdMember[] {
  return Object.entries(record).flatMap(([name, value]) => {
    if (typeof value !== 'string' || value === '' || record[toReferenceMember(name)] !== undefined) return []
    const resource = findReferencedResource(name, api)
    return resource?.isNamed ? [{ path: [name], resource }] : []
  })
}

/** The members of the resource with sets of ids, as the bodies of its operations describe them. */
function listSetMembers(plural: string, { operations, resources }: ApiDescription): IdMember[] {
  const body = operations.find(
    ({ method, path }) => method === 'PATCH' && path === `${resources[plural]?.path}/:id`,
  )?.body
  return listBodyFlags(body?.schema ?? {}).flatMap(({ form, path, refersTo = '', schema }) => {
    const resource = resources[refersTo]
    return form === 'set' && !schema['x-roles'] && resource?.isNamed ? [{ path, resource }] : []
  })
}

// So that the URL stays short.
const MAX_IDS = 100

async function fetchNames(plural: string, ids: readonly string[], client: Client, names: Map<string, string>) {
  for (let at = 0; at < ids.length; at += MAX_IDS) {
    const filter = `id in ${JSON.stringify(ids.slice(at, at + MAX_IDS))}`
    try {
      const { data } = await client.call('GET', `/${plural}?limit=${MAX_IDS}&filter=${encodeURIComponent(filter)}`)
      for (const { id, name } of data as readonly { id: string; name: string }[]) names.set(id, name)
    } catch (error) {
      if (!(error instanceof RequestError)) throw error
    }
  }
}

function withNames(
  record: OutputRecord,
  members: readonly IdMember[],
  names: ReadonlyMap<string, string>,
): OutputRecord {
  const named: Record<string, unknown> = { ...record }
  const toReference = (id: string) => ({ id, name: names.get(id) ?? id })
  for (const { path } of members) {
    const value = getAt(record, path)
    const last = path.at(-1) ?? ''
    if (typeof value === 'string') named[toReferenceMember(last)] = toReference(value)
    else if (Array.isArray(value) && value.length > 0)
      setAt(named, [...path.slice(0, -1), `${last}Display`], value.map(toReference))
  }
  return named
}
