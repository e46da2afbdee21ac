// Hellos: random ones are refused, and those of release 2 are responded to as their own controller does.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { encodeHelloResponse, HelloError, parseHello } from '../../server/control-channel/hello.ts'
import { encodeMessage, HELLO_LIMITS, type Message, MessageReader } from '../../server/control-channel/message.ts'

const RECORDING =
  process.env.COMPAT_RECORDINGS && join(process.env.COMPAT_RECORDINGS, '../router/recording-2.0.3.jsonl')

interface RecordedFrame {
  readonly conn: string
  readonly underlay?: string
  readonly way?: string
  readonly type?: number
  readonly seq?: number
  readonly wire?: string
}

/** The headers of a response by which a router groups its connections, and decides whether it goes on. */
const GROUP_HEADERS = [0, 1, 2, 7, 9, 10, 12, 1002]

function decode(wire: string): Message {
  const reader = new MessageReader(HELLO_LIMITS)
  reader.push(Buffer.from(wire, 'hex'))
  return reader.next()!
}

const readHeaders = ({ headers }: Message, ids: readonly number[]) => ids.map((id) => headers.get(id)?.toString('hex'))

describe('a hello of random headers', () => {
  const flag = fc.constantFrom(Buffer.from([1]), Buffer.from([0]), Buffer.alloc(0))
  const bytes = fc.uint8Array({ maxLength: 80 }).map((value) => Buffer.from(value))
  const headers = fc.record(
    {
      0: bytes,
      4: fc.oneof(bytes, fc.constantFrom(Buffer.from('v2.0.3|a|b|c|d'), Buffer.from('v1.6.5|a|b|c|d'))),
      7: fc.oneof(bytes, fc.constantFrom(Buffer.from('ctrl.default'), Buffer.from('ctrl.high'))),
      9: flag,
      10: bytes,
      11: flag,
      1000: bytes,
    },
    { requiredKeys: ['4', '7', '9'] },
  )

  it('is refused by a reason, or says how the connection is grouped', () => {
    let grouped = 0
    fc.assert(
      fc.property(headers, (values) => {
        const entries = Object.entries(values).map(([id, value]) => [Number(id), value as Buffer] as const)
        try {
          const message = { type: 0, sequence: -1, headers: new Map(entries), body: Buffer.from('router') }
          const { grouping } = parseHello(message)
          expect(grouping !== undefined).toBe(values[9]?.[0] === 1)
          if (!grouping) return
          grouped += 1
          expect(grouping.group !== undefined || grouping.isFirst).toBe(true)
          if (grouping.group) expect(grouping.group.secret.length).toBeGreaterThan(0)
        } catch (error) {
          if (!(error instanceof HelloError)) throw error
        }
      }),
      { numRuns: 5_000 },
    )
    expect(grouped).toBeGreaterThan(10)
  })
})

if (!RECORDING)
  process.stderr.write('the recorded hellos are not read: COMPAT_RECORDINGS names no folder of recordings\n')

describe.skipIf(!RECORDING || !existsSync(RECORDING))('the recorded hellos of release 2', () => {
  const frames = () =>
    readFileSync(RECORDING!, 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as RecordedFrame)
      .filter(({ seq, wire }) => seq === -1 && wire !== undefined)

  it('are read, rendered to the same bytes, and responded to as their own controller did', () => {
    const all = frames()
    const hellos = all.filter(({ type, way, underlay }) => type === 0 && way === 'R>C' && underlay !== undefined)
    expect(hellos.length).toBeGreaterThan(10)
    for (const { conn, underlay, wire } of hellos) {
      const message = decode(wire!)
      expect(encodeMessage(message).toString('hex')).toBe(wire)
      const { grouping, version } = parseHello(message)
      expect(version.version).toBe('v2.0.3')
      expect(grouping?.type).toBe(underlay)
      const recorded = decode(all.find((frame) => frame.conn === conn && frame.type === 2)!.wire!)
      const group = { id: recorded.headers.get(0)!.toString(), secret: recorded.headers.get(10)! }
      if (grouping!.group) expect(grouping!.group).toEqual(group)
      const response = decode(encodeHelloResponse('ctrl1', { type: grouping!.type, group }).toString('hex'))
      expect(readHeaders(response, GROUP_HEADERS)).toEqual(readHeaders(recorded, GROUP_HEADERS))
    }
  })

  it('of release 1 at the same controller have no group', () => {
    const hellos = frames().filter(({ type, way, underlay }) => type === 0 && way === 'R>C' && underlay === undefined)
    expect(hellos.length).toBeGreaterThan(0)
    for (const { wire } of hellos) expect(parseHello(decode(wire!)).grouping).toBeUndefined()
  })
})
