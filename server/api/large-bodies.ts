// Large response bodies, handed over piece by piece as the client takes them.
import type { Writable } from 'node:stream'

// A body that is written at once is copied as a whole when it is encrypted, once for each client that does not read.
const MAX_BYTES_AT_ONCE = 64 * 1024

// The greatest length of a TLS record.
const PIECE_BYTES = 16 * 1024

export function isLarge(body: Buffer | string): boolean {
  return body.length > MAX_BYTES_AT_ONCE
}

/** A large body in parts that stay where they are: most parts of a list are cached records. */
export class BodyParts {
  readonly parts: readonly Buffer[]
  /** Of all parts. */
  readonly byteLength: number

  constructor(parts: readonly Buffer[], byteLength: number) {
    this.parts = parts
    this.byteLength = byteLength
  }

  /** All parts in one buffer. */
  join(): Buffer {
    return Buffer.concat(this.parts, this.byteLength)
  }
}

/** The bytes of a body: joined, unless they are so many that no other copy of them should take memory. */
export function toBody(parts: readonly Buffer[]): Buffer | BodyParts {
  const byteLength = parts.reduce((sum, part) => sum + part.length, 0)
  return byteLength > MAX_BYTES_AT_ONCE ? new BodyParts(parts, byteLength) : Buffer.concat(parts, byteLength)
}

/**
 * Writes parts to a response, and ends it. Each piece takes the buffer of the one before it, which the client has taken by then: a
 * stream takes a new one for each, which costs four times as much, and the memory of those grows until the garbage collector runs.
 */
export function writePieces(response: Writable, parts: readonly Buffer[]): void {
  const source = new PieceSource(parts)
  const buffer = Buffer.allocUnsafeSlow(PIECE_BYTES)
  const writeNext = (error?: Error | null) => {
    if (error) return
    const piece = source.fill(buffer)
    if (piece.length > 0) response.write(piece, writeNext)
    else response.end()
  }
  writeNext()
}

/** Parts as pieces of any size. */
class PieceSource {
  readonly #parts: readonly Buffer[]
  #part = 0
  #offset = 0

  constructor(parts: readonly Buffer[]) {
    this.#parts = parts
  }

  /** Copies the bytes that come next into a buffer. Returns the filled part of it, which is empty at the end. */
  fill(buffer: Buffer): Buffer {
    let filled = 0
    while (filled < buffer.length) {
      const part = this.#parts[this.#part]
      if (!part) break
      const copied = part.copy(buffer, filled, this.#offset)
      filled += copied
      this.#offset += copied
      if (this.#offset < part.length) break
      this.#part += 1
      this.#offset = 0
    }
    return buffer.subarray(0, filled)
  }
}
