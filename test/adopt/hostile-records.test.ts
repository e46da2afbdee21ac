// Databases whose structure is whole and whose records are not what OpenZiti's controller writes. Each adoption of one ends in a named
// error that leaves nothing behind, or in a controller that serves what it adopted.
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { type Adoption, adoptNetwork } from '../../src/adopt.ts'
import { MANAGEMENT, TestClock, testController } from '../world/controller.ts'
import { random as createRandom, type Random } from '../world/random.ts'
import { EditableBucket, editDatabase } from './edited-database.ts'
import { findRecordId, NETWORK_TIME, type NetworkName, unpackNetwork } from './networks.ts'

const folder = mkdtempSync(join(tmpdir(), 'hostile-'))
afterAll(() => rmSync(folder, { recursive: true }))

const ROUNDS = Number(process.env.ADOPT_ROUNDS ?? 8)
const FIRST_SEED = Number(process.env.ADOPT_SEED ?? 1)
const CHANGES = 8

type Content = Buffer | EditableBucket

const toText = (value: string | Buffer) => Buffer.concat([Buffer.from([5]), Buffer.from(value as string)])

function toNumber(type: 3 | 4, value: number | bigint): Buffer {
  const bytes = Buffer.alloc(9, type)
  if (typeof value === 'bigint') bytes.writeBigInt64LE(value, 1)
  else bytes.writeDoubleLE(value, 1)
  return bytes
}

/** A time as Go stores it: seconds since the year 1. */
function toTime(seconds: bigint, nanoseconds = 0): Buffer {
  const bytes = Buffer.alloc(16)
  bytes[0] = 6
  bytes[1] = 1
  bytes.writeBigInt64BE(seconds, 2)
  bytes.writeInt32BE(nanoseconds, 10)
  bytes.writeInt16BE(-1, 14)
  return bytes
}

function toNested(depth: number): EditableBucket {
  const bucket = new EditableBucket()
  bucket.put('x', depth > 0 ? toNested(depth - 1) : toText('end'))
  return bucket
}

const VALUES: readonly Content[] = [
  ...['', 'x'.repeat(70_000), 'a\0b', 'two\nlines \u001b[31m', '__proto__', '#all', '@', '#', '{"a":', '[1]'].map(
    toText,
  ),
  ...['{"properties":{"a":{"pattern":"("}}}', '{"$ref":"http://example.com/x"}', '['.repeat(5000)].map(toText),
  ...['-----BEGIN CERTIFICATE-----\nMAMBAQE=\n-----END CERTIFICATE-----\n', '-----BEGIN CERTIFICATE-----\n'].map(
    toText,
  ),
  toText(Buffer.from([0xff, 0xfe, 0x80])),
  ...[[7], [], [1, 1], [1, 0], [1, 7], [2, 255, 255, 255, 255], [2, 255, 255, 255, 127], [9, 1, 2]].map((bytes) =>
    Buffer.from(bytes),
  ),
  ...[2n ** 63n - 1n, -(2n ** 63n)].flatMap((value) => [toNumber(3, value), toTime(value)]),
  ...[Number.NaN, Number.POSITIVE_INFINITY, 1e308, 0.5].map((value) => toNumber(4, value)),
  ...[0n, 63_000_000_000_000n].map((seconds) => toTime(seconds)),
  toTime(63_000_000_000n, -1),
  ...[new EditableBucket(), toNested(3), toNested(55)],
]
const KEYS = [
  '__proto__',
  'constructor',
  'hasOwnProperty',
  'a\nb',
  '\xff\xfe',
  'x'.repeat(20_000),
  '\x05#all',
  '\x05@gone',
  '\x05',
  '\x02\0\0\0\0',
]

const LISTS = [
  ...[
    'identities',
    'services',
    'configs',
    'config-types',
    'edge-routers',
    'transit-routers',
    'posture-checks',
    'terminators',
  ],
  ...['service-policies', 'edge-router-policies', 'service-edge-router-policies', 'auth-policies', 'authenticators'],
  ...['enrollments', 'cas', 'external-jwt-signers'],
]

const readType = (content: Content | undefined) => (content instanceof EditableBucket ? 'bucket' : content?.[0])

/** Makes a change somewhere among the records. Returns its description. */
function change(buckets: readonly (readonly [path: string, bucket: EditableBucket])[], random: Random): string {
  const [path, bucket] = random.pick(buckets)
  const [key, other] = [bucket.keys.length > 0 ? random.pick(bucket.keys) : 'new', random.pick(KEYS)]
  const former = bucket.get(key)
  const alike = VALUES.filter((value) => readType(value) === readType(former))
  // Most values of another type are refused at once.
  const value = alike.length === 0 || random.oneIn(8) ? random.pick(VALUES) : random.pick(alike)
  const kind = random.below(10)
  if (kind === 0) bucket.put(other, value)
  else if (kind < 3) bucket.delete(key)
  else bucket.put(key, value)
  if (kind === 1 && former !== undefined) bucket.put(other, former)
  return `${path}/${key} ${kind} ${other.slice(0, 20)} ${VALUES.indexOf(value)}`
}

function listBuckets(path: string, bucket: EditableBucket): (readonly [string, EditableBucket])[] {
  return bucket.keys.flatMap((key) => {
    const inner = bucket.get(key)
    const isDerived = path === '' && ['indexes', 'versions', 'metadata', 'eventualEvents'].includes(key)
    if (!(inner instanceof EditableBucket) || isDerived) return []
    return [[`${path}/${key}`, inner] as const, ...listBuckets(`${path}/${key}`, inner)]
  })
}

interface Attempt {
  readonly directory: string
  readonly adoption: Adoption | undefined
  readonly error: unknown
}

/** Adopts a network after its records were changed. */
async function adoptChanged(
  name: NetworkName,
  label: string,
  edit: (records: EditableBucket) => void,
): Promise<Attempt> {
  const home = join(folder, label)
  const { config, database } = unpackNetwork(name, home)
  editDatabase(database, edit)
  const directory = join(home, 'data')
  const options = { directory, configuration: config, env: {}, clock: new TestClock(NETWORK_TIME), osUser: 'operator' }
  try {
    return { directory, adoption: await adoptNetwork(options), error: undefined }
  } catch (error) {
    return { directory, adoption: undefined, error }
  }
}

describe('records that are changed at random', () => {
  const rounds = Array.from({ length: ROUNDS }, (_, round) => FIRST_SEED + round)

  it.each(rounds)('are refused by name, or adopted and served: seed %i', { timeout: 120_000 }, async (seed) => {
    const random = createRandom(seed)
    const changes: string[] = []
    const { directory, adoption, error } = await adoptChanged(
      random.pick(['1.6.5', '2.0.3'] as const),
      `${seed}`,
      (records) => {
        const buckets = listBuckets('', records)
        for (let count = 0; count < CHANGES; count += 1) changes.push(change(buckets, random))
      },
    )
    const label = changes.join('\n')
    if (!adoption) {
      expect(error, label).toMatchObject({ name: 'SourceError' })
      expect(existsSync(directory)).toBe(false)
      return
    }
    adoption.complete()
    const world = await testController({ directory, clock: new TestClock(NETWORK_TIME) })
    const token = await world.admin()
    for (const list of LISTS) {
      const { status, body } = await world.send({ method: 'GET', path: `${MANAGEMENT}/${list}?limit=500`, token })
      expect([list, status, body.error], label).toEqual([list, 200, undefined])
    }
    await world.stop()
  })
})

const router = findRecordId('1.6.5', 'routers', 'router-quickstart')
const client = findRecordId('1.6.5', 'identities', 'client')

describe('a value that no record has', () => {
  it.each<[string, Buffer, string]>([
    ['a time before the year 1', toTime(-1n), 'a time outside of the years 1 to 9999'],
    ['a time after the year 9999', toTime(2n ** 62n), 'a time outside of the years 1 to 9999'],
    ['a time with a negative part of a second', toTime(63_000_000_000n, -1), 'a time outside of the years 1 to 9999'],
    ['a number in place of a time', Buffer.from([2, 1, 0, 0, 0]), 'is not a time'],
    ['a length that does not fit its type', Buffer.from([2, 1, 0]), 'a value of an unknown form'],
    ['an unknown type', Buffer.from([9, 1]), 'a value of an unknown form'],
  ])('is named with its record and its page: %s', async (name, value, problem) => {
    const { error, directory } = await adoptChanged('1.6.5', name, (records) =>
      records.at('identities', client).put('createdAt', value),
    )
    const { code, message } = error as { code?: string; message?: string }
    expect([code, message]).toEqual(['DATABASE_DAMAGED', expect.stringContaining(problem)])
    expect(message).toMatch(new RegExp(`identities/${client}.*createdAt.* on page \\d+`))
    expect(existsSync(directory)).toBe(false)
  })

  it.each<[string, (records: EditableBucket) => EditableBucket]>([
    ['tags', (records) => records.at('identities', client, 'tags')],
    ['a nested map', (records) => records.at('routers', router, 'interfaces', 'lo')],
  ])('is named with its place in %s', async (name, find) => {
    const { error } = await adoptChanged('1.6.5', name, (records) => find(records).put('odd', Buffer.from([3, 1])))
    expect(`${error}`).toMatch(/\/odd on page \d+ has a value of an unknown form/)
  })
})

it('leaves out a config type whose schema is not JSON, and its configs, by name', async () => {
  const { adoption } = await adoptChanged('1.6.5', 'schema', (records) => {
    records.at('configTypes', 'moon.v1').put('name', toText('moon.v1'))
    records.at('configTypes', 'moon.v1').put('schema', toText('{"type":'))
    records.at('configs', 'crater').put('name', toText('crater'))
    records.at('configs', 'crater').put('type', toText('moon.v1'))
    records.at('configs', 'crater', 'data')
  })
  const notes = adoption?.report.notes.map(({ kind, name, problem }) => `${kind} ${name}: ${problem}`)
  expect(notes).toContainEqual('configTypes moon.v1: has a schema that is not JSON: it is left out')
  expect(notes).toContainEqual(expect.stringMatching(/^configs crater: .*left out/))
  expect(adoption?.report.counts.configTypes).toEqual({ found: 8, adopted: 7 })
  adoption?.discard()
})
