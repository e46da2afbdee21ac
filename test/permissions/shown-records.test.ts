// Every operation that reads, called by holders of one permission: no record of another kind is shown to them.
import { beforeAll, describe, expect, it } from 'vitest'
import { findOperationExtent } from '../../server/api/admission.ts'
import { listRoutes } from '../../server/app.ts'
import { operations } from '../../server/operations/operations.ts'
import { toCollectionPath } from '../../src/definitions/model/links.ts'
import { Rights } from '../../src/definitions/permissions/rights.ts'
import { permissionWords } from '../../src/definitions/permissions/words.ts'
import type { AnyResource } from '../../src/definitions/resources/define.ts'
import { resources } from '../../src/definitions/resources/index.ts'
import { exampleBody } from '../world/examples.ts'
import { People } from '../world/people.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
const changeable = (resources as readonly AnyResource[]).filter(({ verbs }) => verbs.includes('create'))
const ids = new Map<string, string>()
const marks = new Map<string, string>()

const ENTITIES = [
  ...['auth-policy', 'ca', 'config', 'config-type', 'edge-router-policy', 'enrollment', 'external-jwt-signer'],
  ...['identity', 'posture-check', 'router', 'service', 'service-edge-router-policy', 'service-policy', 'terminator'],
]

beforeAll(async () => {
  const people = await People.in(world)
  for (const resource of changeable) {
    const mark = `tag-of-${resource.plural}`
    const body = { ...(await exampleBody(world, resource, `name of ${resource.plural}`)), tags: { mark } }
    const { id } = await people.manage('POST', toCollectionPath(resource), body)
    ids.set(resource.plural, id)
    marks.set(resource.plural, mark)
  }
})

/** Streams of events, which are judged event by event. */
const isEndless = (path: string) => path.endsWith('/controller/events') || path.endsWith('/ws-api')

const reads = operations.flatMap((each) =>
  each.method === 'GET' && !('public' in each.access)
    ? listRoutes(each).flatMap(({ api, path }) => (api && !isEndless(path) ? { api, path, operation: each } : []))
    : [],
)

/** The requests of a route: with the id of a record of its collection, or else of each kind. */
function listRequests(path: string): string[] {
  const parameters = path.match(/:\w+/g) ?? []
  if (parameters.length === 0) return [`${path}?limit=500`, path]
  const [, collection = ''] = path.split(/\/v1\/(?:controller\/)?/)
  const first = ids.get(collection.split('/')[0] ?? '')
  const firsts = (first ? [first] : [...ids.values()]).map((id) => path.replace(/:\w+/, id))
  return parameters.length === 1
    ? firsts
    : firsts.flatMap((one) => [...ids.values()].map((two) => one.replace(/:\w+/, two)))
}

/** Word → the kinds of record that its holder reads. */
const SHOWN: Readonly<Record<string, readonly string[]>> = {
  ...Object.fromEntries(
    [...permissionWords]
      .filter((word) => word.endsWith('.read'))
      .map((word) => [word, toCollections(word.slice(0, -5))]),
  ),
  'help-desk': ['services', 'identities', 'enrollments'],
  'router-operator': ['routers', 'edge-routers', 'terminators'],
}

function toCollections(entity: string): readonly string[] {
  if (entity === 'router') return ['routers', 'edge-routers']
  return changeable.flatMap(({ name, plural }) => (name === entity ? plural : []))
}

/** The kinds of record that a holder of permissions is shown anywhere. */
async function listShown(...permissions: string[]): Promise<string[]> {
  const { token } = await world.signIn({ name: `holder of ${permissions}`, permissions })
  const plurals = new Set<string>()
  for (const { api, path, operation } of reads) {
    // The matrix of operations and permissions tests that the others are refused.
    const isOpen = findOperationExtent(operation, api === 'client' ? Rights.none : Rights.fromWords(permissions))
    if (!isOpen) continue
    for (const request of listRequests(path)) {
      const { text, status } = await world.send({ method: 'GET', path: request, token })
      expect(status, request).toBeLessThan(500)
      for (const [plural, mark] of marks) if (text.includes(`"${mark}"`)) plurals.add(plural)
    }
  }
  return [...plurals].sort()
}

describe('the holder of a permission', () => {
  it.each(Object.keys(SHOWN))('%s is shown records of the kinds that it names, and of no other', async (word) => {
    expect(await listShown(word)).toEqual([...(SHOWN[word] ?? [])].sort())
  })

  it('of some records only is not shown the others', async () => {
    const owned = ENTITIES.map((entity) => `${entity}:team=none`)

    expect(await listShown(...owned, 'service:#none', 'identity:#none', 'router:#none', 'posture-check:#none')).toEqual(
      [],
    )
  }, 60_000)
})
