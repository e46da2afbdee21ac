// Bytes that arrive in pieces, collected in one buffer.

const NOTHING = Buffer.alloc(0)

/** A sender may send each byte as a piece of its own, and each piece that is kept takes some hundred bytes as an object. */
export class GrowingBytes {
  #buffer: Buffer = NOTHING
  #length = 0

  get length(): number {
    return this.#length
  }

  /** All bytes so far. */
  get bytes(): Buffer {
    return this.#buffer.subarray(0, this.#length)
  }

  add(piece: Buffer): void {
    const length = this.#length + piece.length
    // Most bodies and messages are one piece, which needs no copy.
    if (this.#length === 0) this.#buffer = piece
    else {
      if (length > this.#buffer.length) this.#grow(length)
      piece.copy(this.#buffer, this.#length)
    }
    this.#length = length
  }

  /** Takes out the first bytes, without a copy. Bytes that come later are not written to their memory. */
  take(length: number): Buffer {
    const all = this.bytes
    this.#length -= length
    // A part of no length would keep the whole memory.
    this.#buffer = this.#length === 0 ? NOTHING : all.subarray(length)
    return all.subarray(0, length)
  }

  /** Doubles the room, so that each byte is copied once or twice, however small the pieces are. */
  #grow(minBytes: number): void {
    const grown = Buffer.allocUnsafeSlow(Math.max(minBytes, 2 * this.#buffer.length))
    this.#buffer.copy(grown, 0, 0, this.#length)
    this.#buffer = grown
  }
}
