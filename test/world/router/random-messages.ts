// Random messages of routers: bodies that follow the protobuf definition of their kind with absurd values, and bytes that do not.
import {
  create,
  type DescField,
  type DescMessage,
  type Message as ProtobufMessage,
  ScalarType,
  toBinary,
} from '@bufbuild/protobuf'
import fc from 'fast-check'
import { ChannelHeader, ContentType } from '../../../server/control-channel/content-types.ts'
import type { Message } from '../../../server/control-channel/message.ts'
import { BODY_SCHEMAS } from './body-schemas.ts'

const MAX_DEPTH = 3

const text = fc.oneof(
  fc.string({ maxLength: 40 }),
  fc.constantFrom('', '__proto__', '\u0000', '../..', '0'.repeat(3_000)),
)
const bytes = fc.uint8Array({ maxLength: 200 })
const small = fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 })
const unsigned = fc.integer({ min: 0, max: 2 ** 32 - 1 })
const long = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })
const unsignedLong = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n })

/** A body of this definition. */
function bodyOf(schema: DescMessage): fc.Arbitrary<Uint8Array> {
  return messageOf(schema, 0).map((message) => toBinary(schema, message))
}

function messageOf(schema: DescMessage, depth: number): fc.Arbitrary<ProtobufMessage> {
  const members = schema.fields.flatMap((field) => {
    const values = depth < MAX_DEPTH ? valuesOf(field, depth) : undefined
    return values ? [[field.localName, fc.option(values, { nil: undefined })] as const] : []
  })
  return fc.record(Object.fromEntries(members)).map((values) => {
    const present = Object.entries(values).filter(([, value]) => value !== undefined)
    return create(schema, Object.fromEntries(present))
  })
}

function valuesOf(field: DescField, depth: number): fc.Arbitrary<unknown> | undefined {
  // Of several alternatives only one may be set, under another name.
  if (field.oneof) return undefined
  switch (field.fieldKind) {
    case 'scalar':
      return scalar(field.scalar)
    case 'enum':
      return small
    case 'message':
      return messageOf(field.message, depth + 1)
    case 'list':
      return fc.array(elementsOf(field, depth), { maxLength: 4 })
    case 'map':
      return field.mapKey === ScalarType.STRING
        ? fc.dictionary(text, elementsOf(field, depth), { maxKeys: 3 })
        : undefined
  }
}

function elementsOf(field: DescField & { readonly fieldKind: 'list' | 'map' }, depth: number): fc.Arbitrary<unknown> {
  const kind = field.fieldKind === 'list' ? field.listKind : field.mapKind
  if (kind === 'message') return messageOf(field.message as DescMessage, depth + 1)
  return kind === 'enum' ? small : scalar(field.scalar as ScalarType)
}

function scalar(type: ScalarType): fc.Arbitrary<unknown> {
  switch (type) {
    case ScalarType.STRING:
      return text
    case ScalarType.BYTES:
      return bytes
    case ScalarType.BOOL:
      return fc.boolean()
    case ScalarType.DOUBLE:
    case ScalarType.FLOAT:
      return fc.double()
    case ScalarType.UINT32:
    case ScalarType.FIXED32:
      return unsigned
    case ScalarType.INT64:
    case ScalarType.SINT64:
    case ScalarType.SFIXED64:
      return long
    case ScalarType.UINT64:
    case ScalarType.FIXED64:
      return unsignedLong
    default:
      return small
  }
}

/** Headers that the handlers of messages read, and others. */
const headerIds = fc.oneof(
  fc.constantFrom(
    ...Object.values(ChannelHeader),
    10,
    11,
    12,
    13,
    14,
    128,
    1003,
    1008,
    1014,
    1026,
    1101,
    1102,
    1103,
    1104,
  ),
  fc.integer({ min: 0, max: 1_200 }),
)
const headerValues = fc.oneof(bytes, fc.constantFrom(new Uint8Array(), new Uint8Array(4).fill(255), new Uint8Array(4)))

const knownTypes = [...new Set([...Object.values(ContentType), ...BODY_SCHEMAS.keys()])]
const withSchema = [...BODY_SCHEMAS.keys()]

const bodied = fc
  .constantFrom(...withSchema)
  .chain((type) => fc.tuple(fc.constant(type), bodyOf(BODY_SCHEMAS.get(type) as DescMessage)))
const unbodied = fc.tuple(fc.oneof(fc.constantFrom(...knownTypes), small), bytes)

/** A message of any kind: most can be parsed, so that they reach what handles them. */
export const randomMessage: fc.Arbitrary<Message> = fc
  .tuple(
    fc.oneof({ arbitrary: bodied, weight: 3 }, { arbitrary: unbodied, weight: 1 }),
    small,
    fc.array(fc.tuple(headerIds, headerValues), { maxLength: 4 }),
  )
  .map(([[type, body], sequence, headers]) => ({
    type,
    sequence,
    headers: new Map(headers.map(([id, value]) => [id, Buffer.from(value)])),
    body: Buffer.from(body),
  }))
