// The documents of both APIs against the public contract, operation by operation, member by member, in both directions.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { buildOpenApiDocument } from '../../server/openapi/openapi.ts'
import { operations } from '../../server/operations/operations.ts'
import { toCollectionPath } from '../../src/definitions/model/links.ts'
import type { AnyResource } from '../../src/definitions/resources/define.ts'
import { resources } from '../../src/definitions/resources/index.ts'
import { MANAGEMENT, type TestController, testController } from '../world/controller.ts'
import { exampleBody } from '../world/examples.ts'
import { ADDED, BEYOND, type Difference, INCOMPLETE, LEFT_OUT, STILL_TO_COME } from './contract-differences.ts'
import { contractFacts, documentFacts } from './contract-facts.ts'

const apis = (['client', 'management'] as const).map((api) => {
  const documented = contractFacts(api)
  const served = documentFacts(buildOpenApiDocument(api, operations))
  const comparedNames = [...documented.keys()].filter((name) => served.has(name) && !STILL_TO_COME[api].includes(name))
  return { api, documented, served, held: comparedNames }
})

const all = resources as readonly AnyResource[]

const differs = (differences: readonly Difference[], operation: string, fact: string) =>
  differences.some(({ operations, facts }) => operations.test(operation) && facts.test(fact))

describe.each(apis)('the $api API', ({ api, documented, served, held }) => {
  it('serves every operation of the contract, but for those that are still to come', () => {
    const missing = [...documented.keys()].filter((name) => !served.has(name) && !STILL_TO_COME[api].includes(name))

    expect(missing).toEqual([])
  })

  it('waits for nothing that the contract does not know', () => {
    expect(STILL_TO_COME[api].filter((name) => !documented.has(name))).toEqual([])
  })

  it('serves nothing that it is said to wait for', () => {
    expect(STILL_TO_COME[api].filter((name) => served.has(name))).toEqual([])
  })

  it('serves nothing beyond, unless it is marked as our own', () => {
    const { paths } = buildOpenApiDocument(api, operations)
    const own = Object.entries(paths).flatMap(([path, methods]) =>
      Object.entries(methods).flatMap(([method, operation]) =>
        (operation as { 'x-own'?: boolean })['x-own']
          ? [`${method.toUpperCase()} ${path.replace(/\{\w+\}/g, '{}')}`]
          : [],
      ),
    )
    const beyond = [...served.keys()].filter((name) => !documented.has(name) && !own.includes(name))

    expect(beyond.filter((name) => !BEYOND.includes(name))).toEqual([])
  })

  it.each(held)('%s takes and returns what the contract says', (name) => {
    const [theirs, ours] = [documented.get(name) ?? new Set<string>(), served.get(name) ?? new Set<string>()]

    const missing = [...theirs].filter((fact) => !ours.has(fact) && !differs(LEFT_OUT, name, fact))
    const added = [...ours].filter((fact) => !theirs.has(fact) && !differs(ADDED, name, fact))

    expect({ missing, added }).toEqual({ missing: [], added: [] })
  })
})

describe('a difference from the contract', () => {
  it('that leaves something out names whole operations and whole facts', () => {
    const loose = LEFT_OUT.flatMap(({ operations: named, facts }) =>
      [named, facts].filter(({ source }) => !/^\^.*\$$/.test(source) || /\|\^|\$\|/.test(source)).map(String),
    )

    expect(loose).toEqual([])
  })

  const facts = (side: 'missing' | 'added') =>
    apis.flatMap(({ documented, served, held }) =>
      held.flatMap((name) => {
        const [theirs, ours] = [documented.get(name) ?? new Set<string>(), served.get(name) ?? new Set<string>()]
        const [from, other] = side === 'missing' ? [theirs, ours] : [ours, theirs]
        return [...from].filter((fact) => !other.has(fact)).map((fact) => [name, fact] as const)
      }),
    )

  it.each([
    ['missing', LEFT_OUT],
    ['added', ADDED],
  ] as const)('that is %s is one that really is there', (side, differences) => {
    const matches = facts(side)
    const idle = differences.filter(
      (difference) => !matches.some(([operation, fact]) => differs([difference], operation, fact)),
    )

    expect(idle.map(({ because }) => because)).toEqual([])
  })
})

describe('what is sent', () => {
  let world: TestController
  let token: string

  beforeAll(async () => {
    world = await testController()
    token = await world.admin()
    for (const resource of all) {
      if (!resource.verbs.includes('create')) continue
      const body = await exampleBody(world, resource, `described ${resource.name}`)
      await world.send({ method: 'POST', path: `${MANAGEMENT}${toCollectionPath(resource)}`, token, body })
    }
  })
  afterAll(() => world.close())

  const lists = operations.filter(({ method, path, apis: [api], returns }) => {
    const isOfRecords = returns.kind === 'list' || (returns.kind === 'data' && returns.schema.type === 'array')
    return method === 'GET' && api === 'management' && !path.includes(':') && isOfRecords
  })

  // Every response of a test is compared with its document in this way.
  it.each(lists.map(({ path }) => [path]))('by GET %s is what the document shows', async (path) => {
    const { status } = await world.send({ method: 'GET', path: `${MANAGEMENT}${path}?limit=100`, token })

    expect(status).toBe(200)
  })
})

describe('the documents', () => {
  it('are served by the client API and the management API, to anyone', async () => {
    const world = await testController()

    for (const [spec, api] of [
      ['edge-client', 'client'],
      ['edge-management', 'management'],
      ['fabric', 'fabric'],
    ] as const) {
      for (const base of ['/edge/client/v1', '/edge/management/v1']) {
        const response = await world.send({ method: 'GET', path: `${base}/specs/${spec}/spec` })
        expect(response.status).toBe(200)
        expect(response.body).toEqual(JSON.parse(JSON.stringify(buildOpenApiDocument(api, operations))))
      }
    }
    await world.close()
  })

  it('name the operations that do not do their work yet, which are those of a list', () => {
    const incomplete = apis.flatMap(({ api }) =>
      Object.entries(buildOpenApiDocument(api, operations).paths).flatMap(([path, methods]) =>
        Object.entries(methods).flatMap(([method, operation]) =>
          'x-incomplete' in (operation as object) ? [`${method.toUpperCase()} ${path.replace(/\{\w+\}/g, '{}')}`] : [],
        ),
      ),
    )

    expect(incomplete.sort()).toEqual([...INCOMPLETE].sort())
  })

  it('name every operation once, by the id that generated clients know', () => {
    for (const api of ['client', 'management', 'fabric'] as const) {
      const described = Object.values(buildOpenApiDocument(api, operations).paths).flatMap((methods) =>
        Object.values(methods).map((operation) => (operation as { operationId: string }).operationId),
      )

      expect(described.sort()).toEqual(operations.flatMap(({ apis, id }) => (apis.includes(api) ? [id] : [])).sort())
    }
  })
})
