// Names that every JavaScript object inherits are names like any other: as literals, symbols and tags of filters.
import { beforeAll, describe, expect, it } from 'vitest'
import { listRoutes } from '../../server/app.ts'
import { operations } from '../../server/operations/operations.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
let token: string

beforeAll(async () => {
  token = await world.admin()
})

const INHERITED = ['constructor', '__proto__', 'toString', 'hasOwnProperty', 'valueOf', 'isPrototypeOf']

const lists = operations
  .filter(({ query, path }) => query && 'filter' in query && !path.includes(':'))
  .flatMap((each) => listRoutes(each).map(({ path }) => path))

describe.each(lists)('the list %s', (path) => {
  const ask = async (filter: string) => {
    const { status, body } = await world.send({
      method: 'GET',
      path: `${path}?filter=${encodeURIComponent(filter)}`,
      token,
    })
    return { status, code: body.error?.code }
  }

  it('finds nothing by such a literal, whatever it is compared with', async () => {
    const { body } = await world.send({ method: 'GET', path, token })
    const symbols = (body.meta.filterableFields as string[]).filter((name) => name !== 'tags')

    for (const symbol of [...symbols, 'tags.a']) {
      for (const name of INHERITED) {
        for (const filter of [`${symbol} = "${name}"`, `${symbol} in ["${name}"]`, `anyOf(${symbol}) = "${name}"`])
          expect([filter, [200, 400]]).toEqual([filter, expect.arrayContaining([(await ask(filter)).status])])
      }
    }
  })

  it.each(INHERITED)('has no symbol of the name %s', async (name) => {
    const responses = [await ask(`${name} = "a"`), await ask(`true sort by ${name}`), await ask(`anyOf(${name}) = "a"`)]

    for (const response of responses) expect(response).toEqual({ status: 400, code: 'INVALID_FILTER' })
  })

  it.each(INHERITED)('takes %s for the key of a tag', async (name) => {
    const { status } = await ask(`tags.${name} = "a" or tags.a.${name} = "a"`)

    expect([200, 400]).toContain(status)
  })
})

describe('a filter by type', () => {
  it.each(INHERITED)('finds nothing by %s', async (name) => {
    for (const plural of ['identities', 'service-policies']) {
      const filter = encodeURIComponent(`type = "${name}"`)
      const { status, body } = await world.send({
        method: 'GET',
        path: `/edge/management/v1/${plural}?filter=${filter}`,
        token,
      })
      expect([status, body.data]).toEqual([200, []])
    }
  })
})
