// The first messages of a connection: how a router introduces itself, and what the controller responds.
import { randomBytes } from 'node:crypto'
import { fromBinary } from '@bufbuild/protobuf'
import type { VersionInfo } from '../../src/access/live-network.ts'
import type { LinkListener } from '../../src/network/routers/router-connection.ts'
import { ChannelHeader, ContentType } from './content-types.ts'
import { encodeBool, encodeInt32, encodeText } from './header-values.ts'
import { encodeMessage, type Message } from './message.ts'
import { ListenersSchema } from './messages/control_pb.ts'

/** A hello that is not one of a router, or of a kind of router that is not supported. */
export class HelloError extends Error {
  override readonly name = 'HelloError'
}

/** What a hello says, before any of it is verified. */
export interface ReceivedHello {
  readonly routerId: string
  readonly version: VersionInfo
  readonly linkListeners: readonly LinkListener[]
}

// The release whose protocol the controller speaks. Routers decide by it what they send, and parse it as numbers.
const PROTOCOL_VERSION = 'v1.6.5|000000000000|2025-07-09T00:00:00Z|linux|amd64'

/** The version alone, for messages that repeat it. */
export const PROTOCOL_RELEASE = 'v1.6.5'

// Bits 1, 2 and 3: terminators and circuits are created by messages of the second version, and only the dialing router reports a
// link. Bit 4, the router data model, must never change during the life of a router's process.
const CAPABILITIES = Buffer.from([0b1110])

const MESSAGE_BEFORE_HELLO = -1
const CONNECTION_ID_BYTES = 8

/**
 * Reads a hello.
 * @throws HelloError if it is malformed, or if the router groups several connections: a later release whose hello has other
 * header ids
 */
export function parseHello({ type, headers, body }: Message): ReceivedHello {
  if (type !== ContentType.HELLO) throw new HelloError(`the first message has type ${type}`)
  if (headers.get(ChannelHeader.IS_GROUPED)?.[0] === 1)
    throw new HelloError('the router groups connections, which is not supported')
  const version = headers.get(ChannelHeader.VERSION)
  if (!version) throw new HelloError('the hello has no version')
  return {
    routerId: body.toString(),
    version: parseRouterVersion(version.toString()),
    linkListeners: parseLinkListeners(headers.get(ChannelHeader.LISTENERS)),
  }
}

/** Reads the five parts of a version text. @throws HelloError */
function parseRouterVersion(versionText: string): VersionInfo {
  const parts = versionText.split('|')
  if (parts.length !== 5) throw new HelloError('the version does not have five parts')
  const [version = '', revision = '', buildDate = '', os = '', arch = ''] = parts
  return { version, revision, buildDate, os, arch }
}

function parseLinkListeners(bytes: Buffer | undefined): LinkListener[] {
  if (!bytes) return []
  try {
    return fromBinary(ListenersSchema, bytes).listeners
  } catch (cause) {
    throw new HelloError('the listeners are malformed', { cause })
  }
}

/** Renders the response to a hello. The id of the controller must stay the same for as long as routers know it. */
export function encodeHelloResponse(controllerId: string): Buffer {
  return encodeMessage({
    type: ContentType.RESULT,
    sequence: MESSAGE_BEFORE_HELLO,
    headers: new Map([
      [ChannelHeader.REPLY_FOR, encodeInt32(MESSAGE_BEFORE_HELLO)],
      [ChannelHeader.RESULT_SUCCESS, encodeBool(true)],
      [ChannelHeader.VERSION, encodeText(PROTOCOL_VERSION)],
      [ChannelHeader.CONTROLLER_ID, encodeText(controllerId)],
      [ChannelHeader.CONNECTION_ID, encodeText(randomBytes(CONNECTION_ID_BYTES).toString('hex'))],
      [ChannelHeader.CAPABILITIES, CAPABILITIES],
    ]),
    body: Buffer.alloc(0),
  })
}
