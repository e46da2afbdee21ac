// Filters that are made to cost much: they are refused, or their work is done where it holds up nobody.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { BoundedCache } from '../../src/bounded-cache.ts'
import { parseQuery } from '../../src/filter/parse.ts'
import { MANAGEMENT, type TestController, testController } from '../world/controller.ts'

let world: TestController
let token: string

beforeAll(async () => {
  world = await testController()
  token = await world.admin()
})
afterAll(() => world.close())

const list = (plural: string, filter: string) =>
  world.send({ method: 'GET', path: `${MANAGEMENT}/${plural}?filter=${encodeURIComponent(filter)}`, token })

const refusal = (text: string) => {
  try {
    parseQuery(text)
  } catch (error) {
    return (error as { publicCause: { message: string } }).publicCause.message
  }
  return undefined
}

describe('a date-time that does not end', () => {
  it.each([
    ['many of them', 'datetime('.repeat(1_800)],
    ['white space', `datetime(${' '.repeat(16_000)}`],
    ['text that is none', `datetime(${'a'.repeat(16_000)}`],
  ])('is refused where the first begins: %s', (_what, text) => {
    expect(refusal(`createdAt > ${text}`)).toBe('a date-time that does not end, at line 1, column 13')
  })

  it('is read with white space around it', () => {
    expect(
      refusal(`createdAt > datetime(${'\t'.repeat(8_000)}2024-01-01T00:00:00Z${'\n'.repeat(8_000)})`),
    ).toBeUndefined()
  })
})

describe('a filter that asks much of each record', () => {
  const many = (term: string, count: number) => Array.from({ length: count }, () => term).join(' or ')

  it.each([
    ['searches in any language', many('name icontains "é"', 700)],
    ['what policies match', many('isEmpty(identities)', 30)],
    ['sub-queries', many('isEmpty(from services where name icontains "é")', 40)],
    ['tags', many('tags.a contains "é"', 700)],
  ])('is refused: %s', async (_what, filter) => {
    const { status, body } = await list('service-policies', filter)

    expect([status, body.error?.code]).toEqual([400, 'INVALID_FILTER'])
    expect(body.error.cause.message).toContain('asks too much of each record')
  })

  it.each([
    ['ids apart', many('id = "a"', 900)],
    ['ids in a list', `id in [${Array.from({ length: 1_900 }, () => '"a"').join(',')}]`],
    ['searches', many('name contains "é"', 700)],
    ['what policies match', many('isEmpty(identities)', 16)],
  ])('is answered if it stays below the bound: %s', async (_what, filter) => {
    expect((await list('service-policies', filter)).status).toBe(200)
  })
})

describe('what is kept of filters', () => {
  it('stays below a number of bytes, whatever is asked', () => {
    const cache = new BoundedCache<string>(10_000)

    for (let at = 0; at < 100; at++) cache.set(`key ${at}`, 'value', 1_000)
    cache.set('larger than all of it', 'value', 20_000)

    expect(cache.bytes).toBeLessThanOrEqual(10_000)
    expect(cache.get('key 99')).toBe('value')
    expect(cache.get('key 0')).toBeUndefined()
    expect(cache.get('larger than all of it')).toBeUndefined()
  })

  it('is what was used last', () => {
    const cache = new BoundedCache<number>(3_000)
    for (const key of ['a', 'b']) cache.set(key, 1, 1_000)

    cache.get('a')
    cache.set('c', 1, 1_000)

    expect([cache.get('a'), cache.get('b'), cache.get('c')]).toEqual([1, undefined, 1])
  })
})
