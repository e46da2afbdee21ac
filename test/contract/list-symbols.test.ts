// The symbols that lists can be filtered and sorted by: never more than they show to the caller.
import { beforeAll, describe, expect, it } from 'vitest'
import { listRoutes } from '../../server/app.ts'
import { operations } from '../../server/operations/operations.ts'
import { compiledResources, getCompiledResource } from '../../src/definitions/model/index.ts'
import { limitRecordSchema } from '../../src/definitions/model/record-schema.ts'
import { getResource, resources } from '../../src/definitions/resources/index.ts'
import type { JsonSchema } from '../../src/definitions/schema/json-schema.ts'
import { makeExample } from '../world/examples.ts'
import { newName } from '../world/names.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
let token: string

beforeAll(async () => {
  token = await world.admin()
})

const lists = operations
  .filter(({ query, returns }) => query && 'filter' in query && returns.kind === 'list')
  .flatMap((each) => listRoutes(each).map(({ api, path }) => ({ each, api, path })))

/** Every name that some list knows. */
const allSymbols = [
  ...new Set(
    compiledResources.flatMap(({ filterSource }) => [...filterSource.symbols.keys()].filter((name) => name !== 'tags')),
  ),
]

/** Symbols that carry another name than the member they stand for. */
const MEMBER_OF: Readonly<Record<string, string>> = {
  instanceId: 'identity',
  certFingerprint: 'fingerprint',
  updbUsername: 'username',
  mfaComplete: 'isMfaComplete',
  // Constant: it says nothing about a record.
  isSystem: 'id',
}

function documentedMembers(plural: string, only: readonly string[] | undefined): ReadonlySet<string> {
  const schema = only ? limitRecordSchema(getResource(plural), only) : getCompiledResource(plural).recordSchema
  const shapes = (schema.oneOf as JsonSchema[] | undefined) ?? [schema]
  return new Set(shapes.flatMap(({ properties }) => Object.keys(properties ?? {})))
}

async function concretePath(path: string): Promise<string> {
  const parent = /\/([a-z-]+)\/:id\//.exec(path)?.[1]
  if (!parent) return path
  const resource = resources.find(
    ({ plural, alternateName: otherName }) => plural === parent || otherName?.plural === parent,
  )
  if (!resource) throw new Error(`no resource has the path ${path}`)
  return path.replace(':id', await makeExample(world, resource.plural, newName(resource.name)))
}

describe.each(lists.map((list) => [`GET ${list.path}`, list] as const))('%s', (_name, { path }) => {
  const ask = (where: string, name: string, text: string) =>
    world.send({ method: 'GET', path: `${where}?${name}=${encodeURIComponent(text)}`, token })

  it('refuses every symbol that it does not name in filterableFields, in filters and in orders', async () => {
    const where = await concretePath(path)
    const { body } = await world.send({ method: 'GET', path: where, token })
    const usable = new Set<string>(body.meta.filterableFields)

    for (const symbol of allSymbols.filter((name) => !usable.has(name))) {
      const filtered = await ask(where, 'filter', `${symbol} = null`)
      const sorted = await ask(where, 'sort', symbol)
      expect([symbol, filtered.body.error?.code, sorted.body.error?.code]).toEqual([
        symbol,
        'INVALID_FILTER',
        'INVALID_SORT_IDENTIFIER',
      ])
    }
  })
})

/** Lists of which not only administrators learn, or which show less than the whole record. */
const limitedLists = lists.filter(({ each: { returns, access } }) => {
  const isForAdministrators = 'permission' in access && access.grantedTo === 'administrator'
  return !isForAdministrators || (returns.kind === 'list' && returns.only !== undefined)
})

describe.each(limitedLists.map((list) => [`GET ${list.path}`, list] as const))('%s', (_name, { each, path }) => {
  it('can be asked about the members it shows, and about nothing else', async () => {
    const { returns } = each
    const [resource, only] = returns.kind === 'list' ? [returns.resource, returns.only] : ['', undefined]
    const { body } = await world.send({ method: 'GET', path: await concretePath(path), token })
    const members = documentedMembers(resource, only)

    for (const symbol of body.meta.filterableFields as string[]) {
      const member = MEMBER_OF[symbol] ?? symbol.split('.')[0] ?? ''
      const isShown = members.has(member) || members.has(`${member}Id`)
      expect([symbol, isShown]).toEqual([symbol, true])
    }
  })
})
