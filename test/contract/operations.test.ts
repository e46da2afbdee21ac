// Rules that hold for every operation.
import { beforeAll, describe, expect, it } from 'vitest'
import type { AnyOperation } from '../../server/api/operation.ts'
import { defineOperation } from '../../server/api/operation.ts'
import { dataResponse } from '../../server/api/responses.ts'
import { buildApp, listRoutes } from '../../server/app.ts'
import { operations } from '../../server/operations/operations.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
let stranger: { id: string; token: string }

beforeAll(async () => {
  stranger = await world.signIn({ name: 'no administrator' })
})

const everyRoute = operations.flatMap((each) => listRoutes(each).map(({ path, api }) => ({ each, path, api })))
const restricted = everyRoute.filter(({ each }) => 'permission' in each.access)
const concrete = (path: string) => path.replace(/:\w+/g, 'some-id')
const named = ({ each, path }: { each: AnyOperation; path: string }) => `${each.method} ${path}`

describe('every operation', () => {
  it.each(operations.map((each) => [each.id, each]))(
    '%s states its permission, or why it needs none',
    (_id, { access }) => {
      const stated = 'public' in access ? access.public : access.permission

      expect(stated.length).toBeGreaterThan(3)
    },
  )

  it('has an id of its own within its API', () => {
    for (const api of ['client', 'management', 'fabric'] as const) {
      const ids = operations.filter(({ apis }) => apis.includes(api)).map(({ id }) => id)

      expect(new Set(ids).size).toBe(ids.length)
    }
  })

  it.each(restricted.map((route) => [named(route), route]))(
    '%s refuses a caller without a session',
    async (_name, { each, path }) => {
      const response = await world.send({ method: each.method, path: concrete(path) })

      expect(response.status).toBe(401)
      expect(response.body.error).toMatchObject({ code: 'UNAUTHORIZED', cause: { code: 'SESSION_MISSING' } })
    },
  )

  it.each(restricted.map((route) => [named(route), route]))(
    '%s refuses a session it does not know',
    async (_name, { each, path }) => {
      const response = await world.send({
        method: each.method,
        path: concrete(path),
        token: '00000000-0000-4000-8000-000000000000',
      })

      expect(response.status).toBe(401)
      expect(response.body.error.cause.code).toBe('SESSION_UNKNOWN')
    },
  )

  const forAdministrators = restricted.filter(
    ({ each }) => 'permission' in each.access && each.access.grantedTo === 'administrator',
  )

  it.each(forAdministrators.map((route) => [named(route), route]))(
    '%s refuses callers who are not administrators, without reading the body',
    async (_name, { each, path }) => {
      const response = await world.send({
        method: each.method,
        path: concrete(path),
        token: stranger.token,
        ...(each.body ? { body: '{ this is not json', headers: { 'content-type': 'application/json' } } : {}),
      })

      expect(response.status).toBe('permission' in each.access && each.access.isForbidden ? 403 : 401)
      expect(response.body.error.cause.code).toBe('PERMISSION_DENIED')
    },
  )

  it.each(everyRoute.map((route) => [named(route), route]))(
    '%s responds with 405 to unsupported methods',
    async (_name, { path }) => {
      const methodsOfPath = everyRoute.filter((other) => other.path === path).map(({ each }) => each.method)
      const other = (['DELETE', 'PATCH', 'PUT', 'POST', 'GET'] as const).find(
        (method) => !methodsOfPath.includes(method),
      )
      if (!other) return

      const response = await world.send({ method: other, path: concrete(path) })

      expect(response.status).toBe(405)
      expect(response.body.error.code).toBe('METHOD_NOT_ALLOWED')
    },
  )
})

describe('an application', () => {
  it('does not start with an operation that states nothing', async () => {
    const silent = defineOperation({
      id: 'silent',
      apis: ['client'],
      topic: 'informational',
      method: 'GET',
      path: '/silent',
      summary: 'States nothing.',
      access: { public: '' },
      returns: { kind: 'empty' },
      run: () => dataResponse({}),
    })

    await expect(buildApp(world.controller, { operations: [silent] })).rejects.toThrow(/neither a permission/)
  })
})
