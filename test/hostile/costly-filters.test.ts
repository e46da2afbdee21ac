// Filters that are made to cost much: they are refused, or run where they delay no other request.
import { beforeAll, describe, expect, it } from 'vitest'
import { parseQuery } from '../../src/storage/filter/parse.ts'
import { MANAGEMENT } from '../world/controller.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
let token: string

beforeAll(async () => {
  token = await world.admin()
})

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
    expect(body.error.cause.message).toContain('costs too much for each record')
  })

  it.each([
    ['ids apart', many('id = "a"', 900)],
    ['ids in a list', `id in [${Array.from({ length: 1_900 }, () => '"a"').join(',')}]`],
    ['searches', many('name contains "é"', 700)],
    ['what policies match', many('isEmpty(identities)', 16)],
  ])('succeeds if it stays below the bound: %s', async (_what, filter) => {
    expect((await list('service-policies', filter)).status).toBe(200)
  })
})

describe('parsed filters', () => {
  const unused = 'name = "unused"'
  const used = 'name = "used"'

  it('stay cached as long as they are used, and are evicted before they fill the memory', () => {
    const trees = [unused, used].map(parseQuery)

    for (let at = 0; at < 100; at++) {
      parseQuery(`name = "${at} ${'x'.repeat(1_000)}"`)
      parseQuery(used)
    }

    expect(parseQuery(used)).toBe(trees[1])
    expect(parseQuery(unused)).not.toBe(trees[0])
  })
})
