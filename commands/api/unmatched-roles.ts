// Notes the roles of a policy that match no record: most often a role is misspelt, or a record has not been given it yet.
import type { ApiDescription } from '../../src/client/api-description.ts'
import { findNearest } from '../../src/foundation/nearest.ts'
import type { Client } from '../client/client.ts'
import { quoteText, toNoun, toSimilarityFilter } from '../client/names.ts'
import { RequestError } from '../foundation/request-error.ts'
import type { CommandRun } from '../framework/connected.ts'
import { getAt } from './body-flags.ts'
import type { CommandTask, PreparedRequest } from './task.ts'

/** A role attribute, and the resource whose records it selects. */
interface SelectedAttribute {
  readonly attribute: string
  readonly plural: string
}

/** Notes, after a change, each role attribute in it that no record has. The change is right if a record gets it later. */
export async function noteUnmatchedRoles(
  { members, api, operation }: CommandTask,
  requests: readonly PreparedRequest[],
  { client, notice }: CommandRun,
): Promise<void> {
  if (operation.method === 'GET' || operation.method === 'DELETE') return
  const roleMembers = members.filter(({ schema }) => Boolean(schema['x-roles']))
  const selected = new Map<string, SelectedAttribute>()
  for (const { body } of requests) {
    for (const { path, refersTo = '' } of roleMembers) {
      for (const role of [getAt(body, path) ?? []].flat().map(String)) {
        if (!role.startsWith('#') || role === '#all') continue
        selected.set(`${refersTo} ${role}`, { attribute: role.slice(1), plural: refersTo })
      }
    }
  }
  try {
    for (const one of selected.values()) {
      const note = await findNote(one, api, client)
      if (note !== undefined) notice(note)
    }
  } catch (error) {
    // The change is made, whether its roles can be looked up or not.
    if (!(error instanceof RequestError)) throw error
  }
}

async function findNote(
  { attribute, plural }: SelectedAttribute,
  { resources }: ApiDescription,
  client: Client,
): Promise<string | undefined> {
  const resource = resources[plural]
  if (!resource) return undefined
  const list = `/${resource.name}-role-attributes`
  if ((await searchAttributes(client, list, `id = ${quoteText(attribute)}`)).length > 0) return undefined
  const similar = await searchAttributes(client, list, toSimilarityFilter('id', attribute))
  const near = findNearest(attribute, similar).map((one) => `#${one}`)
  return describeUnmatchedRole(toNoun(resource.name), `#${attribute}`, near)
}

/** @param near roles that are similar and select records */
export function describeUnmatchedRole(noun: string, role: string, near: readonly string[]): string {
  const note = `No ${noun} has the role ${role} yet`
  return near.length > 0 ? `${note}: did you mean ${near.join(' or ')}?` : `${note}.`
}

const MAX_CANDIDATES = 200

async function searchAttributes(client: Client, list: string, filter: string): Promise<readonly string[]> {
  const { data } = await client.call('GET', `${list}?limit=${MAX_CANDIDATES}&filter=${encodeURIComponent(filter)}`)
  return data as string[]
}
