// The reader of bbolt files: real databases, files of every shape, and files that are damaged or made to mislead it.
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, describe, expect, it } from 'vitest'
import { type BucketContent, sealMeta, writeBoltFile } from '../../bench/former-network/bolt-writer.ts'
import type { BoltBucket } from '../../src/adopt/bolt-bucket.ts'
import { BoltFile } from '../../src/adopt/bolt-file.ts'
import { SourceError } from '../../src/adopt/source-error.ts'
import { unpackFile } from '../../src/adopt/source-files.ts'
import { readDatabase as readSource, SourceDatabase } from '../../src/adopt/source-records.ts'
import { decodePlain, decodeScalar, StoredTime } from '../../src/adopt/typed-values.ts'
import { random as createRandom } from '../world/random.ts'
import { type NetworkName, readDatabase, readNetworkJson, SNAPSHOT } from './networks.ts'

const folder = mkdtempSync(join(tmpdir(), 'bolt-'))
afterAll(() => rmSync(folder, { recursive: true }))
const path = join(folder, 'file.db')
/** For a test that reads a whole database a hundred times. */
const MANY_ROUNDS_MS = 180_000

/** Writes a file, and returns its bytes. */
function writeBytes(...file: Parameters<typeof writeBoltFile>): Buffer {
  writeBoltFile(...file)
  return readFileSync(file[0])
}

type Dump = { readonly [key: string]: Dump } | string | number | boolean | null | readonly Dump[]

const COUNTS = '__list__size__36484231-110c-4767-afe2-01b6e3db107a'

/** Decodes a whole bucket in the form of the dumps. */
function dump(bucket: BoltBucket): Dump {
  const entries = [...bucket.entries()]
  const isTyped = entries.length > 0 && entries.every(({ key }) => key[0] === 5)
  if (isTyped && entries.every(({ value }) => value.length === 0))
    return { $set: entries.map(({ key }) => key.toString('utf8', 1)) }
  if (isTyped) {
    const counts = entries.map(
      ({ key, value }) => [key.toString('utf8', 1), decodeScalar(value, '') as number] as const,
    )
    return { $counted: Object.fromEntries(counts) }
  }
  if (entries.some(({ key }) => key.toString() === COUNTS)) return decodePlain(bucket) as Dump
  return Object.fromEntries(
    entries.map((entry) => [entry.key.toString(), entry.bucket ? dump(entry.bucket) : toDumped(entry.value)]),
  )
}

function toDumped(value: Buffer): Dump {
  try {
    const scalar = decodeScalar(value, '')
    return scalar instanceof StoredTime ? { $time: scalar.ms } : (scalar as Dump)
  } catch {
    return { $raw: value.toString('hex') }
  }
}

/** The dump of another program, in the same form: times in milliseconds, shortened schemas as the expected beginning. */
function normalize(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(normalize)
  const members = Object.entries(value)
  if ('$time' in value) return { $time: Date.parse(`${(value.$time as string).slice(0, 23)}Z`) }
  return Object.fromEntries(members.map(([name, member]) => [name, normalize(member)]))
}

function readAll(file: string): unknown {
  const opened = BoltFile.open(file)
  try {
    return dump(opened.root)
  } finally {
    opened.close()
  }
}

describe.each<NetworkName>(['1.6.5', '1.6.5-three-roots', '2.0.3'])('the database of %s', (name) => {
  it('is decoded as another program decodes it', () => {
    writeFileSync(path, readDatabase(name))
    const { ziti: actual } = readAll(path) as { ziti: Record<string, Record<string, unknown>> }
    const { ziti: expected } = readNetworkJson<{ ziti: Record<string, Record<string, unknown>> }>(name, 'dump')
    // The dump leaves out or cuts indexes, change events with binary keys, schemas, and values that only bytes are.
    for (const kind of Object.keys(expected).filter(
      (each) => !['indexes', 'metadata', 'configTypes', 'terminators'].includes(each),
    ))
      expect(actual[kind], kind).toEqual(normalize(expected[kind]))
    expect(Object.keys(actual.configTypes ?? {})).toEqual(Object.keys(expected.configTypes ?? {}).sort())
    expect(Object.keys(actual.terminators ?? {})).toEqual(Object.keys(expected.terminators ?? {}).sort())
  })

  it('is not changed by reading', () => {
    writeFileSync(path, readDatabase(name))
    const before = statSync(path)
    readAll(path)
    const after = statSync(path)
    expect([after.mtimeMs, after.size, readFileSync(path).equals(readDatabase(name))]).toEqual([
      before.mtimeMs,
      before.size,
      true,
    ])
  })
})

describe('a compressed database', () => {
  const bytes = readFileSync(SNAPSHOT)
  const { ziti } = readNetworkJson<{ ziti: Record<string, object> }>('2.0.3', 'dump')
  const scratch = mkdtempSync(join(folder, 'scratch-'))
  const read = () => readSource(path, scratch, async (database) => [...database.ids('services')])

  it('is unpacked into a file that is gone once it is open', async () => {
    writeFileSync(path, bytes)
    const services = await readSource(path, scratch, async (database) => {
      expect(readdirSync(scratch)).toEqual([])
      return [...database.ids('services')]
    })
    expect(services).toEqual(Object.keys(ziti.services ?? {}))
  })

  it.each([
    ['ends early', bytes.subarray(0, bytes.length - 100)],
    ['has other bytes', Buffer.concat([bytes.subarray(0, 2000), Buffer.alloc(2000, 7), bytes.subarray(4000)])],
    ['has another checksum', Buffer.concat([bytes.subarray(0, -8), Buffer.alloc(8, 1)])],
    ['only begins as one', Buffer.concat([bytes.subarray(0, 2), Buffer.alloc(100, 7)])],
    ['holds no database', gzipSync('v: 3')],
  ])('that %s is refused, and leaves nothing behind', async (_, content) => {
    writeFileSync(path, content)
    await expect(read()).rejects.toMatchObject({ code: expect.stringMatching(/^(DATABASE_DAMAGED|NOT_A_DATABASE)$/) })
    expect(readdirSync(scratch)).toEqual([])
  })

  it('that unpacks to more than a database has is refused before it is all unpacked', async () => {
    writeFileSync(path, gzipSync(Buffer.alloc(2 ** 24)))
    const target = join(scratch, 'unpacked')
    await expect(unpackFile(path, target, 2 ** 20)).rejects.toMatchObject({ code: 'DATABASE_TOO_LARGE' })
    expect(statSync(target).size).toBeLessThanOrEqual(2 ** 20)
  })
})

// ---- files of every shape -----------------------------------------------------------------------------------------------

const text = (value: string) => Buffer.concat([Buffer.from([5]), Buffer.from(value)])
const many = (count: number): BucketContent =>
  new Map(
    Array.from({ length: count }, (_, index) => [
      `id-${String(index).padStart(6, '0')}`,
      new Map([['name', text(`n${index}`)]]),
    ]),
  )

describe.each([1024, 4096, 16_384, 65_536])('a file with pages of %i bytes', (pageBytes) => {
  it('gives every key of buckets in one page, of buckets in many, and values longer than a page', () => {
    const long = text('x'.repeat(200_000))
    const records = new Map(many(5_000))
    writeBoltFile(
      path,
      new Map([
        ['records', records],
        ['long', new Map([['value', long]])],
        ['empty', new Map()],
      ]),
      pageBytes,
    )
    const { root } = BoltFile.open(path)
    expect([...(root.findBucket('records')?.entries() ?? [])].map(({ key }) => key.toString())).toEqual([
      ...records.keys(),
    ])
    expect([...(root.findBucket('long')?.entries() ?? [])][0]?.value.equals(long)).toBe(true)
    expect([...(root.findBucket('empty')?.entries() ?? [])]).toEqual([])
  })
})

it('reads a page with the greatest number of elements', () => {
  const keys = Array.from(
    { length: 65_535 },
    (_, index) => [`k${String(index).padStart(5, '0')}`, Buffer.from([7])] as const,
  )
  const bytes = writeBytes(path, new Map([['all', new Map(keys)]]), 4 * 1024 * 1024)
  expect(bytes.length).toBeGreaterThan(0)
  expect([...(BoltFile.open(path).root.findBucket('all')?.entries() ?? [])]).toHaveLength(65_535)
})

it('takes the newer meta, and the other one if that is damaged', () => {
  const bytes = writeBytes(path, new Map([['records', many(10)]]))
  expect(BoltFile.open(path).transactionId).toBe(2n)
  for (const [offset, other] of [
    [4096, 1n],
    [0, 2n],
  ] as const) {
    const damaged = Buffer.from(bytes)
    damaged[offset + 30] = 0xff
    writeFileSync(path, damaged)
    expect(BoltFile.open(path).transactionId).toBe(other)
  }
})

// ---- damaged and hostile files --------------------------------------------------------------------------------------------

/** Reads a file whole. Returns its error, undefined if it has none. */
function readError(bytes: Buffer): unknown {
  writeFileSync(path, bytes)
  try {
    readAll(path)
    return undefined
  } catch (error) {
    return error
  }
}

function codeOf(error: unknown): string | undefined {
  if (error === undefined) return undefined
  return error instanceof SourceError ? error.code : `${error}`
}

/** Requires that an error, if there is one, names the page, or says that the file as a whole is not a database. */
function expectNamedPlace(error: unknown, label: string): void {
  if (error === undefined) return
  expect(error, label).toBeInstanceOf(SourceError)
  expect((error as SourceError).message, label).toMatch(
    /page \d+|not a database|of \d+ bytes|nested more than|its beginning/,
  )
}

describe('a file that is not a database', () => {
  it.each([
    ['is empty', Buffer.alloc(0)],
    ['is text', Buffer.from('v: 3\ndb: ctrl.db\n'.repeat(1000))],
    ['has two damaged metas', Buffer.alloc(64 * 1024)],
  ])('%s: it is refused', (_, bytes) => {
    expect(codeOf(readError(bytes))).toBe('NOT_A_DATABASE')
  })

  it('is refused if it is the file of another program', () => {
    writeBoltFile(path, new Map([['logs', many(3)]]))
    expect(() => new SourceDatabase(BoltFile.open(path))).toThrow("no data of OpenZiti's controller")
  })
})

it.each([
  [36, 'SCHEMA_TOO_OLD'],
  [45, 'SCHEMA_TOO_NEW'],
])('a database of the schema %i is refused', (schema, code) => {
  const version = Buffer.alloc(9)
  version[0] = 3
  version.writeBigInt64LE(BigInt(schema), 1)
  writeBoltFile(path, new Map([['ziti', new Map([['versions', new Map([['edge', version]])]])]]))
  const open = () => new SourceDatabase(BoltFile.open(path))
  expect(open).toThrow(expect.objectContaining({ code }))
})

describe('a damaged database', () => {
  const whole = readDatabase('1.6.5')

  it('is refused wherever it ends', () => {
    for (let end = 1; end < 40; end += 1)
      expect(['DATABASE_DAMAGED', 'NOT_A_DATABASE', undefined]).toContain(
        codeOf(readError(whole.subarray(0, Math.floor((whole.length * end) / 40)))),
      )
    expect(codeOf(readError(whole.subarray(0, 100_000)))).toBe('DATABASE_DAMAGED')
  })

  it('ends in a named error, or is read, with any bits flipped', { timeout: MANY_ROUNDS_MS }, () => {
    const random = createRandom(1)
    for (let round = 0; round < 120; round += 1) {
      const bytes = Buffer.from(whole)
      for (let flips = 0; flips < 1 + random.below(8); flips += 1) {
        const at = random.below(bytes.length)
        bytes[at] = (bytes[at] as number) ^ (1 << random.below(8))
      }
      expectNamedPlace(readError(bytes), `round ${round}`)
    }
  })

  it('ends in a named error, or is read, with lying lengths and counts in the heads of its pages', {
    timeout: MANY_ROUNDS_MS,
  }, () => {
    const random = createRandom(2)
    const values = [0, 1, 0xff, 0xffff, 0x7fffffff, 0xffffffff, whole.length]
    for (let round = 0; round < 150; round += 1) {
      const bytes = Buffer.from(whole)
      const page = 2 + random.below(whole.length / 4096 - 2)
      bytes.writeUInt32LE(values[random.below(values.length)] as number, page * 4096 + 4 * random.below(64))
      expectNamedPlace(readError(bytes), `round ${round}`)
    }
  })
})

describe('pages that refer in circles', () => {
  it('are refused if a bucket contains itself', () => {
    const bytes = writeBytes(path, new Map([['a', new Map([['b', many(200)]])]]))
    // The header and the element of the only key come before that key, and its value behind it.
    const findValue = (page: bigint) => Number(page) * 4096 + 16 + 16 + 1
    const root = bytes.readBigUInt64LE(4096 + 16 + 16)
    const outer = bytes.readBigUInt64LE(findValue(root))
    // The bucket `b` begins at the page of the bucket `a` that holds it.
    bytes.writeBigUInt64LE(outer, findValue(outer))
    expect(codeOf(readError(bytes))).toBe('DATABASE_DAMAGED')
  })

  it('are refused if two buckets share a page', () => {
    const bytes = writeBytes(
      path,
      new Map([
        ['aa', many(200)],
        ['bb', many(200)],
      ]),
    )
    const root = Number(bytes.readBigUInt64LE(4096 + 16 + 16))
    const [first, second] = ['aa', 'bb'].map((key) => bytes.indexOf(Buffer.from(key), root * 4096) + 2) as [
      number,
      number,
    ]
    bytes.copy(bytes, second, first, first + 8)
    expect(`${readError(bytes)}`).toContain('two things refer to page')
  })

  it('are refused outside of the file', () => {
    const bytes = writeBytes(path, new Map([['aa', many(200)]]))
    for (const page of [1n, 100_000n, 2n ** 63n]) {
      const damaged = Buffer.from(bytes)
      for (const offset of [0, 4096]) {
        damaged.writeBigUInt64LE(page, offset + 32)
        sealMeta(damaged, offset)
      }
      expect(codeOf(readError(damaged))).toBe('DATABASE_DAMAGED')
    }
  })
})

it('a page that says that it runs over more than any value has is refused, before its bytes are read', () => {
  const bytes = writeBytes(path, new Map([['aa', many(200)]]))
  const root = Number(bytes.readBigUInt64LE(4096 + 16 + 16))
  for (const overflow of [0xffff_ffff, 20_000]) {
    bytes.writeUInt32LE(overflow, root * 4096 + 12)
    expect(`${readError(bytes)}`).toMatch(new RegExp(`page ${root} runs over \\d+ bytes, more than any value has`))
  }
})

it('a record with more members than the memory should hold is refused, with its place', () => {
  const long = text('x'.repeat(4 * 2 ** 20))
  const members = Array.from({ length: 17 }, (_, index) => [`m${index}`, long] as const)
  const content = new Map([['ziti', new Map([['identities', new Map([['all-in-one', new Map(members)]])]])]])
  writeBoltFile(path, content as BucketContent)
  const identities = BoltFile.open(path).root.findBucket('ziti')?.findBucket('identities')
  expect(() => identities?.findBucket('all-in-one')?.list()).toThrow(
    /ziti\/identities\/all-in-one has more than a record can have, on page \d+/,
  )
})

it('buckets nested without end are refused', () => {
  let content: BucketContent = new Map()
  for (let depth = 0; depth < 100; depth += 1) content = new Map([['x', content]])
  expect(codeOf(readError(writeBytes(path, content, 65_536)))).toBe('DATABASE_DAMAGED')
})
