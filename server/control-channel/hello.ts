// The first messages of a connection: how a router introduces itself, and what the controller responds.
import { randomBytes } from 'node:crypto'
import { fromBinary } from '@bufbuild/protobuf'
import type { VersionInfo } from '../../src/definitions/resources/routers.ts'
import { isEqualInConstantTime } from '../../src/foundation/constant-time.ts'
import type { LinkListener } from '../../src/network/routers/router-connection.ts'
import { CONNECTION_TYPES, type ConnectionType } from './connection.ts'
import { ChannelHeader, ContentType } from './content-types.ts'
import { encodeBool, encodeInt32, encodeText } from './header-values.ts'
import { encodeMessage, type Message, type MessageHeaders } from './message.ts'
import { ListenersSchema } from './messages/control_pb.ts'

/** A hello that is not one of a router, or of a kind of router that is not supported. */
export class HelloError extends Error {
  override readonly name = 'HelloError'
}

/** The connections of one process of a router. The secret proves that a further one is of the same process. */
export interface ConnectionGroup {
  readonly id: string
  readonly secret: Buffer
}

/** How a connection belongs to others of the same router: it begins a group, or joins the named one. */
export type Grouping =
  | {
      readonly type: ConnectionType
      readonly isFirst: true
      /** The group of earlier connections of the process; undefined in its first hello. */
      readonly group: ConnectionGroup | undefined
    }
  | { readonly type: ConnectionType; readonly isFirst: false; readonly group: ConnectionGroup }

/** The contents of a hello, before any of it is verified. */
export interface ReceivedHello {
  readonly routerId: string
  readonly version: VersionInfo
  readonly linkListeners: readonly LinkListener[]
  /** Undefined for a router of release 1, which has one connection. */
  readonly grouping: Grouping | undefined
}

/** The release whose protocol the controller speaks with a router. Routers decide by it what they send, and parse it as numbers. */
export const PROTOCOL_RELEASES = { single: 'v1.6.5', grouped: 'v2.0.3' } as const
const PROTOCOL_BUILD = '000000000000|2025-07-09T00:00:00Z|linux|amd64'

// Bits 1, 2 and 3: terminators and circuits are created by messages of the second version, and only the dialing router reports a
// link. Bit 4, the router data model, must never change during the life of a router's process.
const CAPABILITIES = Buffer.from([0b1110])

// Bit 4 in addition, which these routers assume anyway, 5: several connections, and 6: signed tokens of sessions, without which they
// do not connect.
const GROUPED_CAPABILITIES = Buffer.from([0b1111110])

const MESSAGE_BEFORE_HELLO = -1
const CONNECTION_ID_BYTES = 8
const GROUP_SECRET_BYTES = 16

// Every router is told the version of every other one.
const MAX_VERSION_LENGTH = 512

// Routers repeat what they were given, by this controller or an earlier one.
const MAX_GROUP_SECRET_BYTES = 64

/**
 * Reads a hello.
 * @throws HelloError if it is malformed
 */
export function parseHello({ type, headers, body }: Message): ReceivedHello {
  if (type !== ContentType.HELLO) throw new HelloError(`the first message has type ${type}`)
  const versionText = headers.get(ChannelHeader.VERSION)
  if (!versionText) throw new HelloError('the hello has no version')
  const version = parseRouterVersion(versionText.toString())
  const grouping = parseGrouping(headers, version)
  const listeners = grouping ? ChannelHeader.LISTENERS_2 : ChannelHeader.LISTENERS
  return { routerId: body.toString(), version, linkListeners: parseLinkListeners(headers.get(listeners)), grouping }
}

/** Reads the five parts of a version text. @throws HelloError */
function parseRouterVersion(versionText: string): VersionInfo {
  const parts = versionText.split('|')
  if (versionText.length > MAX_VERSION_LENGTH) throw new HelloError('the version is too long')
  if (parts.length !== 5) throw new HelloError('the version does not have five parts')
  const [version = '', revision = '', buildDate = '', os = '', arch = ''] = parts
  return { version, revision, buildDate, os, arch }
}

/** @throws HelloError */
function parseGrouping(headers: MessageHeaders, { version }: VersionInfo): Grouping | undefined {
  if (!readFlag(headers, ChannelHeader.IS_GROUPED)) return undefined
  if (!canGroup(version)) throw new HelloError('the release of the router does not group connections')
  const typeText = headers.get(ChannelHeader.CONNECTION_TYPE)?.toString()
  const type = CONNECTION_TYPES.find((known) => known === typeText)
  if (!type) throw new HelloError('the connection has no type that is known')
  const group = parseGroup(headers)
  if (readFlag(headers, ChannelHeader.IS_FIRST_OF_GROUP)) return { type, isFirst: true, group }
  if (!group) throw new HelloError('the connection names no group')
  return { type, isFirst: false, group }
}

const readFlag = (headers: MessageHeaders, id: number) => headers.get(id)?.[0] === 1

/** Releases from 2 on do; a build without a release, which calls itself v0.0.0, is taken for one of them. */
function canGroup(version: string): boolean {
  const major = /^v?(\d+)\.\d+\.\d+/.exec(version)?.[1]
  return (major !== undefined && Number(major) >= 2) || /^v?0\.0\.0/.test(version)
}

/** @throws HelloError */
function parseGroup(headers: MessageHeaders): ConnectionGroup | undefined {
  const id = headers.get(ChannelHeader.CONNECTION_ID)
  const secret = headers.get(ChannelHeader.GROUP_SECRET)
  if (!id && !secret) return undefined
  if (!id?.length || !secret?.length || secret.length > MAX_GROUP_SECRET_BYTES)
    throw new HelloError('the group has no id, or its secret is missing or too long')
  // A copy, because it lives longer than the frame.
  return { id: id.toString(), secret: Buffer.from(secret) }
}

function parseLinkListeners(bytes: Buffer | undefined): LinkListener[] {
  if (!bytes) return []
  try {
    return fromBinary(ListenersSchema, bytes).listeners
  } catch (cause) {
    throw new HelloError('the listeners are malformed', { cause })
  }
}

/** Makes the group of a process that has none yet. */
export function createGroup(): ConnectionGroup {
  return { id: createConnectionId(), secret: randomBytes(GROUP_SECRET_BYTES) }
}

/** Whether a connection that names a group belongs to this one. */
export function isSameGroup(group: ConnectionGroup, named: ConnectionGroup): boolean {
  return group.id === named.id && isEqualInConstantTime(group.secret, named.secret)
}

const createConnectionId = () => randomBytes(CONNECTION_ID_BYTES).toString('hex')

/** A connection of a group, as the response to its hello repeats it. */
export interface GroupedConnection {
  readonly type: ConnectionType
  readonly group: ConnectionGroup
}

/** Renders the response to a hello. The id of the controller must stay the same for as long as routers know it. */
export function encodeHelloResponse(controllerId: string, grouped?: GroupedConnection): Buffer {
  const release = grouped ? PROTOCOL_RELEASES.grouped : PROTOCOL_RELEASES.single
  return encodeMessage({
    type: ContentType.RESULT,
    sequence: MESSAGE_BEFORE_HELLO,
    headers: new Map([
      [ChannelHeader.REPLY_FOR, encodeInt32(MESSAGE_BEFORE_HELLO)],
      [ChannelHeader.RESULT_SUCCESS, encodeBool(true)],
      [ChannelHeader.VERSION, encodeText(`${release}|${PROTOCOL_BUILD}`)],
      [ChannelHeader.CONTROLLER_ID, encodeText(controllerId)],
      ...(grouped ? listGroupHeaders(grouped) : listSingleHeaders()),
    ]),
    body: Buffer.alloc(0),
  })
}

function listSingleHeaders(): [number, Buffer][] {
  return [
    [ChannelHeader.CONNECTION_ID, encodeText(createConnectionId())],
    [ChannelHeader.CAPABILITIES, CAPABILITIES],
  ]
}

function listGroupHeaders({ type, group }: GroupedConnection): [number, Buffer][] {
  return [
    [ChannelHeader.CONNECTION_ID, encodeText(group.id)],
    [ChannelHeader.CONNECTION_TYPE, encodeText(type)],
    [ChannelHeader.IS_GROUPED, encodeBool(true)],
    [ChannelHeader.GROUP_SECRET, group.secret],
    [ChannelHeader.CAPABILITIES, GROUPED_CAPABILITIES],
    [ChannelHeader.CAPABILITIES_2, GROUPED_CAPABILITIES],
  ]
}
