// The values of message headers that are collections: as other implementations write them, and refused if they are malformed.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decodeRouteResult } from '../../server/control-channel/circuit-values.ts'
import {
  decodeBytesByNumber,
  decodeTextByName,
  encodeBytesByNumber,
  encodeTextByName,
  HeaderValueError,
} from '../../server/control-channel/header-values.ts'

const FIXTURE = join(import.meta.dirname, '../fixtures/control-channel-frames.jsonl')
const frames = readFileSync(FIXTURE, 'utf8')
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line) as { type: number; headers: [number, string][] })

/** The values of a header in the frames of some types. */
function valuesOf(types: readonly number[], header: number): Buffer[] {
  return frames
    .filter(({ type }) => types.includes(type))
    .flatMap(({ headers }) => headers.filter(([id]) => id === header).map(([, hex]) => Buffer.from(hex, 'hex')))
}

describe('a map in a header', () => {
  it('of bytes by number is read, and rendered to the same bytes', () => {
    const values = valuesOf([20218, 20219], 10)
    expect(values.length).toBeGreaterThan(0)
    for (const value of values) expect(encodeBytesByNumber(decodeBytesByNumber(value))).toEqual(value)
  })

  it('of text by name is read, and rendered to the same bytes', () => {
    const values = valuesOf([20219], 13)
    expect(values.length).toBeGreaterThan(0)
    for (const value of values) expect(encodeTextByName(decodeTextByName(value))).toEqual(value)
  })

  it('is the same after it was rendered and read', () => {
    const bytes = fc.uint8Array({ maxLength: 64 }).map((value) => Buffer.from(value))
    const entries = fc.array(fc.tuple(fc.nat(0xffffffff), bytes), { maxLength: 20 })
    fc.assert(
      fc.property(entries, (list) => {
        const map = new Map(list)
        expect(decodeBytesByNumber(encodeBytesByNumber(map))).toEqual(map)
      }),
    )
  })

  it('without entries is a value without bytes', () => {
    expect(encodeBytesByNumber(new Map())).toHaveLength(0)
    expect(decodeBytesByNumber(Buffer.alloc(0))).toEqual(new Map())
  })

  it('is refused, and nothing else happens, whatever bytes it has', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
        try {
          expect(decodeBytesByNumber(Buffer.from(bytes)).size).toBeLessThanOrEqual(128)
        } catch (error) {
          expect(error).toBeInstanceOf(HeaderValueError)
        }
      }),
    )
  })

  it.each([
    ['more entries than routers accept', [129, 0, 0, 0]],
    ['four billion entries', [255, 255, 255, 255]],
    ['an entry that is cut short', [1, 0, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0, 1]],
    ['an entry of four gigabytes', [1, 0, 0, 0, 1, 0, 0, 0, 255, 255, 255, 255]],
    ['bytes after the last entry', [1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 7]],
  ])('is refused with %s', (_name, bytes) => {
    expect(() => decodeBytesByNumber(Buffer.from(bytes))).toThrow(HeaderValueError)
  })
})

describe('the result of a route', () => {
  const toResult = (headers: [number, Buffer][]) =>
    decodeRouteResult({ type: 1022, sequence: 7, headers: new Map(headers), body: Buffer.from('circuit') })
  const attempt: [number, Buffer] = [1101, Buffer.from([1, 0, 0, 0])]

  it('names the circuit, the attempt, and what the terminator says, without what the channel adds', () => {
    const result = toResult([
      attempt,
      [1, Buffer.from([9, 0, 0, 0])],
      [5, Buffer.alloc(8)],
      [1102, Buffer.from([1])],
      [1003, Buffer.from('key')],
      [1110, Buffer.from('10.0.0.1:80')],
    ])
    const peerData = new Map([[1003, Buffer.from('key')]])
    expect(result).toEqual({ circuitId: 'circuit', attempt: 1, failure: undefined, peerData })
  })

  it.each([
    [0, 'generic'],
    [1, 'invalid terminator'],
    [2, 'misconfigured terminator'],
    [3, 'dial timed out'],
    [4, 'dial refused'],
    [99, 'generic'],
  ])('with code %i is the failure "%s"', (code, kind) => {
    const { failure } = toResult([attempt, [1103, Buffer.from('reason')], [1104, Buffer.from([code])]])
    expect(failure).toEqual({ kind, message: 'reason' })
  })

  it.each([
    ['without an attempt', []],
    ['with an attempt that is not a number', [[1101, Buffer.from([1])]]],
  ] as [string, [number, Buffer][]][])('is a failure %s, whatever else it says', (_name, headers) => {
    const { attempt, failure } = toResult([...headers, [1102, Buffer.from([1])]])
    expect(attempt).toBeUndefined()
    expect(failure).toMatchObject({ kind: 'generic' })
  })
})
