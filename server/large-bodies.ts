// Large response bodies, handed over piece by piece as the client takes them.
import { Readable } from 'node:stream'

// A body that is written at once is copied as a whole when it is encrypted, once for each client that does not read.
const MAX_BYTES_AT_ONCE = 64 * 1024

// What a TLS record holds at most.
const PIECE_BYTES = 16 * 1024

export function isLarge(body: Buffer | string): boolean {
  return body.length > MAX_BYTES_AT_ONCE
}

/** The pieces of a body, without copying them. */
export function toPieces(body: Buffer): Readable {
  let at = 0
  return new Readable({
    highWaterMark: PIECE_BYTES,
    read() {
      this.push(at < body.length ? body.subarray(at, at + PIECE_BYTES) : null)
      at += PIECE_BYTES
    },
  })
}
