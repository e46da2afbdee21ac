// The frames of the control channel: 20 bytes of lengths, headers by number, and a body.
import { GrowingBytes } from '../connections/growing-bytes.ts'
import { ContentType } from './content-types.ts'

/** Values by header id. Their order on the wire has no meaning, but it is kept. */
export type MessageHeaders = ReadonlyMap<number, Buffer>

export interface Message {
  readonly type: number
  readonly sequence: number
  readonly headers: MessageHeaders
  readonly body: Buffer
}

/** The part of a message that a reply to it needs. */
export type ReplyTarget = Pick<Message, 'sequence' | 'headers'>

/** The longest headers and body, in bytes, that a reader accepts. */
export interface MessageLimits {
  readonly maxHeaderBytes: number
  readonly maxBodyBytes: number
  /** The kinds of message whose length clients of a router decide. One of them that is too long is skipped. */
  readonly clientTypes?: ReadonlySet<number>
}

/** Before the hello the other side is not known yet. */
export const HELLO_LIMITS: MessageLimits = { maxHeaderBytes: 16_384, maxBodyBytes: 4_192 }

/**
 * After the hello. The longest messages of a router report ten thousand sessions, or its metrics. A client could cut its router off
 * again and again, if a request for it that is too long ended the channel.
 */
export const MESSAGE_LIMITS: MessageLimits = {
  maxHeaderBytes: 256 * 1024,
  maxBodyBytes: 2 * 1024 * 1024,
  clientTypes: new Set([
    ContentType.CREATE_CIRCUIT_V2_REQUEST,
    ContentType.CREATE_TERMINATOR_V2_REQUEST,
    ContentType.UPDATE_EDGE_TERMINATOR_REQUEST,
  ]),
}

/** A longer one is taken for bytes that are not a message. */
const SKIPPED_LIMITS: MessageLimits = { maxHeaderBytes: 64 * 1024 * 1024, maxBodyBytes: 64 * 1024 * 1024 }

const MAGIC = Buffer.from('0306090c', 'hex')
const PREFIX_BYTES = 20
const HEADER_PREFIX_BYTES = 8
const EMPTY = Buffer.alloc(0)

/** The begin of a message that is skipped, because it is too long. */
export type SkippedMessage = Pick<Message, 'type' | 'sequence'>

/** Bytes that are not a frame, or a frame beyond the limits: the channel cannot go on. */
export class MalformedFrameError extends Error {
  override readonly name = 'MalformedFrameError'
}

/** Renders a frame. */
export function encodeMessage({ body, ...head }: Message): Buffer {
  return encodeHead(head, body.length, body)
}

/**
 * Renders the begin of a frame: all that comes before its body, which has `bodyBytes`.
 * @param body what of the body is rendered with it
 */
export function encodeHead(
  { type, sequence, headers }: Omit<Message, 'body'>,
  bodyBytes: number,
  body: Buffer = EMPTY,
): Buffer {
  let headerBytes = 0
  for (const value of headers.values()) headerBytes += HEADER_PREFIX_BYTES + value.length
  const frame = Buffer.allocUnsafe(PREFIX_BYTES + headerBytes + body.length)
  MAGIC.copy(frame)
  frame.writeInt32LE(type, 4)
  frame.writeInt32LE(sequence, 8)
  frame.writeInt32LE(headerBytes, 12)
  frame.writeUInt32LE(bodyBytes, 16)
  let offset = PREFIX_BYTES
  for (const [id, value] of headers) {
    offset = frame.writeInt32LE(id, offset)
    offset = frame.writeInt32LE(value.length, offset)
    offset += value.copy(frame, offset)
  }
  body.copy(frame, offset)
  return frame
}

/** Cuts the bytes of a connection into messages, however they arrive. */
export class MessageReader {
  #limits: MessageLimits
  readonly #received = new GrowingBytes()
  /** The length of the frame that is arriving; undefined until its prefix is there. */
  #frameBytes: number | undefined
  /** How much of a message that is too long has not arrived yet. */
  #skippedBytes = 0
  /** Called with each message that is skipped, when its prefix has arrived. */
  onSkip: (skipped: SkippedMessage) => void = () => {}

  constructor(limits: MessageLimits) {
    this.#limits = limits
  }

  /** Applies other limits from the next frame on. */
  setLimits(limits: MessageLimits): void {
    this.#limits = limits
  }

  /** Adds bytes. */
  push(chunk: Buffer): void {
    this.#received.add(chunk)
  }

  /**
   * Returns the next message; undefined until all of it has arrived.
   * @throws MalformedFrameError if the bytes are not a frame, or exceed the limits: before anything is allocated for them
   */
  next(): Message | undefined {
    while (this.#frameBytes === undefined) {
      this.#skip()
      if (this.#received.length < PREFIX_BYTES) return undefined
      this.#beginFrame(this.#received.bytes)
    }
    if (this.#received.length < this.#frameBytes) return undefined
    const frame = this.#received.take(this.#frameBytes)
    this.#frameBytes = undefined
    return decodeFrame(frame)
  }

  #beginFrame(bytes: Buffer): void {
    const type = bytes.readInt32LE(4)
    const maySkip = this.#limits.clientTypes?.has(type) === true
    const frameBytes = readFrameBytes(bytes, maySkip ? SKIPPED_LIMITS : this.#limits)
    if (!maySkip || isWithin(bytes, this.#limits)) {
      this.#frameBytes = frameBytes
      return
    }
    this.#skippedBytes = frameBytes
    this.onSkip({ type, sequence: bytes.readInt32LE(8) })
  }

  /** Drops what has arrived of a message that is too long. */
  #skip(): void {
    const bytes = Math.min(this.#skippedBytes, this.#received.length)
    if (bytes === 0) return
    this.#received.take(bytes)
    this.#skippedBytes -= bytes
  }
}

function isWithin(bytes: Buffer, { maxHeaderBytes, maxBodyBytes }: MessageLimits): boolean {
  return bytes.readInt32LE(12) <= maxHeaderBytes && bytes.readInt32LE(16) <= maxBodyBytes
}

/** @throws MalformedFrameError */
function readFrameBytes(bytes: Buffer, { maxHeaderBytes, maxBodyBytes }: MessageLimits): number {
  if (!bytes.subarray(0, MAGIC.length).equals(MAGIC))
    throw new MalformedFrameError('the frame has another magic number')
  const headerBytes = bytes.readInt32LE(12)
  const bodyBytes = bytes.readInt32LE(16)
  if (headerBytes < 0 || headerBytes > maxHeaderBytes)
    throw new MalformedFrameError(`the headers have ${headerBytes} bytes; at most ${maxHeaderBytes} are accepted`)
  if (bodyBytes < 0 || bodyBytes > maxBodyBytes)
    throw new MalformedFrameError(`the body has ${bodyBytes} bytes; at most ${maxBodyBytes} are accepted`)
  return PREFIX_BYTES + headerBytes + bodyBytes
}

function decodeFrame(frame: Buffer): Message {
  const bodyOffset = PREFIX_BYTES + frame.readInt32LE(12)
  return {
    type: frame.readInt32LE(4),
    sequence: frame.readInt32LE(8),
    headers: decodeHeaders(frame.subarray(PREFIX_BYTES, bodyOffset)),
    body: bodyOffset === frame.length ? EMPTY : frame.subarray(bodyOffset),
  }
}

/** The last of several headers with the same id wins. */
function decodeHeaders(bytes: Buffer): MessageHeaders {
  const headers = new Map<number, Buffer>()
  let offset = 0
  while (offset < bytes.length) {
    if (bytes.length - offset < HEADER_PREFIX_BYTES) throw new MalformedFrameError('a header is cut short')
    const id = bytes.readInt32LE(offset)
    const length = bytes.readInt32LE(offset + 4)
    offset += HEADER_PREFIX_BYTES
    if (length < 0 || length > bytes.length - offset) throw new MalformedFrameError('a header exceeds the headers')
    headers.set(id, bytes.subarray(offset, offset + length))
    offset += length
  }
  return headers
}
