// Frames of the control channel: decoded and rendered again to the same bytes, however they are split, and refused if they lie.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type DescField, type DescMessage, fromBinary, type JsonValue, toBinary, toJson } from '@bufbuild/protobuf'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ContentType } from '../../server/control-channel/content-types.ts'
import {
  encodeMessage,
  HELLO_LIMITS,
  MalformedFrameError,
  MESSAGE_LIMITS,
  type Message,
  MessageReader,
} from '../../server/control-channel/message.ts'
import { BODY_SCHEMAS } from '../world/router/body-schemas.ts'

const FIXTURE = join(import.meta.dirname, '../fixtures/control-channel-frames.jsonl')

/** The recordings of routers lie beside the recorded requests. */
const recordingOf = (release: string) =>
  process.env.COMPAT_RECORDINGS && join(process.env.COMPAT_RECORDINGS, `../router/recording-${release}.jsonl`)
const RECORDING = recordingOf('1.6.5')
const RECORDING_2 = recordingOf('2.0.3')

/** A frame of the fixture; its bytes were written by other implementations of the frames and of protobuf. */
interface FixtureFrame {
  readonly type: number
  readonly sequence: number
  readonly headers: readonly (readonly [number, string])[]
  readonly wire: string
  readonly body?: string
  readonly message?: JsonValue
}

function readLines<T>(path: string): T[] {
  return readFileSync(path, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as T)
}

function decode(wire: string): Message {
  const reader = new MessageReader(MESSAGE_LIMITS)
  reader.push(Buffer.from(wire, 'hex'))
  const message = reader.next()
  expect(reader.next()).toBeUndefined()
  return message!
}

const fixture = readLines<FixtureFrame>(FIXTURE)

describe('a frame', () => {
  it.each(fixture.map((frame) => [frame.type, frame] as const))(
    'of type %i is decoded, and rendered to the same bytes',
    (_type, frame) => {
      const message = decode(frame.wire)
      expect(message.type).toBe(frame.type)
      expect(message.sequence).toBe(frame.sequence)
      expect([...message.headers].map(([id, value]) => [id, value.toString('hex')])).toEqual(frame.headers)
      if (frame.message === undefined) expect(message.body.toString('hex')).toBe(frame.body)
      else expect(readBody(BODY_SCHEMAS.get(frame.type)!, message.body)).toEqual(frame.message)
      expect(encodeMessage(message).toString('hex')).toBe(frame.wire)
    },
  )

  it('is read alike however the connection splits it', () => {
    const bytes = Buffer.from(fixture.map(({ wire }) => wire).join(''), 'hex')
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 200 }), { minLength: 1 }), (sizes) => {
        const reader = new MessageReader(MESSAGE_LIMITS)
        const messages: Message[] = []
        for (let offset = 0, turn = 0; offset < bytes.length; turn += 1) {
          const size = sizes[turn % sizes.length]!
          reader.push(bytes.subarray(offset, offset + size))
          offset += size
          for (let message = reader.next(); message; message = reader.next()) messages.push(message)
        }
        expect(Buffer.concat(messages.map(encodeMessage)).equals(bytes)).toBe(true)
      }),
      { numRuns: 50 },
    )
  })

  it('that begins with other bytes is refused', () => {
    const reader = new MessageReader(MESSAGE_LIMITS)
    reader.push(Buffer.from('GET / HTTP/1.1\r\nHost: a\r\n\r\n'))
    expect(() => reader.next()).toThrow(MalformedFrameError)
  })

  it.each([
    ['headers of 4 GB', 12, -1],
    ['a body of 4 GB', 16, -1],
    ['a body of 2 GB', 16, 0x7fffffff],
    ['headers beyond the limit', 12, MESSAGE_LIMITS.maxHeaderBytes + 1],
    ['a body beyond the limit', 16, MESSAGE_LIMITS.maxBodyBytes + 1],
  ])('that announces %s is refused before the bytes arrive', (_name, offset, length) => {
    const prefix = Buffer.from(fixture[0]!.wire, 'hex').subarray(0, 20)
    prefix.writeInt32LE(length, offset)
    const reader = new MessageReader(MESSAGE_LIMITS)
    reader.push(prefix)
    expect(() => reader.next()).toThrow(MalformedFrameError)
  })

  it('of more than 16,384 bytes of headers or 4,192 of body is refused as a hello', () => {
    for (const [offset, length] of [
      [12, 16_385],
      [16, 4_193],
    ] as const) {
      const prefix = Buffer.from(fixture[0]!.wire, 'hex').subarray(0, 20)
      prefix.writeInt32LE(length, offset)
      const reader = new MessageReader(HELLO_LIMITS)
      reader.push(prefix)
      expect(() => reader.next()).toThrow(MalformedFrameError)
    }
  })

  it.each([
    ['a header that exceeds the headers', [1, 0, 0, 0, 9, 0, 0, 0]],
    ['a header of negative length', [1, 0, 0, 0, 255, 255, 255, 255]],
    ['a header that is cut short', [1, 0, 0, 0, 0]],
  ])('with %s is refused', (_name, headers) => {
    const frame = Buffer.from(fixture[0]!.wire, 'hex').subarray(0, 20)
    frame.writeInt32LE(headers.length, 12)
    frame.writeInt32LE(0, 16)
    const reader = new MessageReader(MESSAGE_LIMITS)
    reader.push(Buffer.concat([frame, Buffer.from(headers)]))
    expect(() => reader.next()).toThrow(MalformedFrameError)
  })

  it('of random bytes never does more than be refused', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 400 }), (bytes) => {
        const reader = new MessageReader(MESSAGE_LIMITS)
        reader.push(Buffer.concat([Buffer.from('0306090c', 'hex'), bytes]))
        try {
          reader.next()
        } catch (error) {
          expect(error).toBeInstanceOf(MalformedFrameError)
        }
      }),
      { numRuns: 2_000 },
    )
  })
})

/** The protobuf JSON of a body, which must also be rendered to the same bytes if its maps have one entry at most. */
function readBody(schema: DescMessage, body: Buffer): JsonValue {
  const message = fromBinary(schema, body)
  expect(toBinary(schema, message).length).toBe(body.length)
  return toJson(schema, message, { useProtoFieldName: true })
}

interface RecordedFrame {
  readonly n: number
  readonly type?: number
  readonly wire?: string
  readonly wireWithoutBody?: string
  readonly sameBodyAs?: number
  readonly body?: string
  readonly decoded?: JsonValue
}

if (!RECORDING)
  process.stderr.write('the recorded frames are not read: COMPAT_RECORDINGS names no folder of recordings\n')

describe.skipIf(!RECORDING || !existsSync(RECORDING))('the recorded frames of a router and its controller', () => {
  it('are decoded as they were recorded, and rendered to the same bytes', () => {
    const lines = readLines<RecordedFrame>(RECORDING!)
    const bodies = new Map(lines.map(({ n, body }) => [n, body]))
    const frames = lines.filter(({ wire, wireWithoutBody }) => wire ?? wireWithoutBody)
    expect(frames.length).toBeGreaterThan(1_400)
    for (const frame of frames) {
      const wire = frame.wire ?? `${frame.wireWithoutBody}${bodies.get(frame.sameBodyAs!)}`
      const message = decode(wire)
      expect(message.type).toBe(frame.type)
      expect(encodeMessage(message).toString('hex')).toBe(wire)
      const schema = BODY_SCHEMAS.get(message.type)
      // The body of an error is text, but for the reply to one request.
      if (typeof frame.decoded !== 'object' || frame.decoded === null || frame.type === ContentType.ERROR) continue
      expect(schema, `a body of type ${message.type} is known`).toBeDefined()
      expect(toRecorded(schema!, message.body), `line ${frame.n}`).toEqual(frame.decoded)
    }
  })
})

describe.skipIf(!RECORDING_2 || !existsSync(RECORDING_2))('the recorded frames of a router of release 2', () => {
  it('are read, and rendered to the same bytes', () => {
    const lines = readLines<RecordedFrame>(RECORDING_2!)
    const bodies = new Map(lines.map(({ n, body }) => [n, body]))
    const frames = lines.filter(({ wire, wireWithoutBody }) => wire ?? wireWithoutBody)
    expect(frames.length).toBeGreaterThan(1_200)
    for (const frame of frames) {
      const wire = frame.wire ?? `${frame.wireWithoutBody}${bodies.get(frame.sameBodyAs!)}`
      const message = decode(wire)
      expect(message.type).toBe(frame.type)
      expect(encodeMessage(message).toString('hex')).toBe(wire)
    }
  })

  it('have a data model and its changes that are decoded as they were recorded, and rendered to the same bytes', () => {
    const types: ReadonlySet<number | undefined> = new Set([
      ContentType.DATA_STATE,
      ContentType.DATA_STATE_CHANGE_SET,
      ContentType.SUBSCRIBE_TO_DATA_MODEL,
    ])
    const frames = readLines<RecordedFrame>(RECORDING_2!).filter(({ type, body }) => types.has(type) && body)
    expect(frames.length).toBeGreaterThan(100)
    for (const { n, type, body, decoded } of frames) {
      const schema = BODY_SCHEMAS.get(type!)!
      const bytes = Buffer.from(body!, 'hex')
      expect(toRecorded(schema, bytes), `line ${n}`).toEqual(decoded)
      expect(Buffer.from(toBinary(schema, fromBinary(schema, bytes))).toString('hex'), `line ${n}`).toBe(body)
    }
  })
})

/** The form of the recording: protobuf's JSON without defaults, with bytes as hexadecimal and times as their parts. */
function toRecorded(schema: DescMessage, body: Buffer): JsonValue {
  return describeMessage(schema, fromBinary(schema, body) as unknown as Members)
}

type Members = Readonly<Record<string, unknown>>

function describeMessage(desc: DescMessage, message: Members): JsonValue {
  const described = desc.fields.map((field) => [field.name, describeField(field, readMember(field, message))] as const)
  return Object.fromEntries(described.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])))
}

function readMember({ oneof, localName }: DescField, message: Members): unknown {
  if (!oneof) return message[localName]
  const choice = message[oneof.localName] as { readonly case?: string; readonly value?: unknown }
  return choice.case === localName ? choice.value : undefined
}

function describeField(field: DescField, member: unknown): JsonValue | undefined {
  if (field.fieldKind === 'list') {
    const list = member as readonly unknown[]
    return list.length === 0 ? undefined : list.map((entry) => describeValue(field, entry))
  }
  if (field.fieldKind === 'map') {
    const entries = Object.entries(member as Members)
    if (entries.length === 0) return undefined
    return Object.fromEntries(entries.map(([key, entry]) => [key, describeValue(field, entry)]))
  }
  const isDefault = member instanceof Uint8Array ? member.length === 0 : !member
  return isDefault ? undefined : describeValue(field, member)
}

function describeValue(field: DescField, value: unknown): JsonValue {
  if (value instanceof Uint8Array) return Buffer.from(value).toString('hex')
  if (typeof value === 'bigint') return String(value)
  if (field.enum) return field.enum.value[value as number]?.name ?? String(value)
  if (field.message) return describeMessage(field.message, value as Members)
  return value as JsonValue
}
