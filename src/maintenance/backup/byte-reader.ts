// Reads pieces of a known length from a stream of chunks.

export class ByteReader {
  readonly #chunks: AsyncIterator<Uint8Array>
  #rest: Buffer = Buffer.alloc(0)

  constructor(chunks: AsyncIterable<Uint8Array>) {
    this.#chunks = chunks[Symbol.asyncIterator]()
  }

  /** The next `length` bytes, or fewer at the end of the stream. */
  async read(length: number): Promise<Buffer> {
    const pieces = [this.#rest]
    let available = this.#rest.length
    while (available < length) {
      const { value, done } = await this.#chunks.next()
      if (done) break
      pieces.push(Buffer.from(value))
      available += value.length
    }
    const bytes = pieces.length === 1 ? this.#rest : Buffer.concat(pieces)
    this.#rest = bytes.subarray(length)
    return bytes.subarray(0, length)
  }

  /** The bytes up to and including the next line feed, of at most `maxLength`; fewer at the end of the stream. */
  async readLine(maxLength: number): Promise<string> {
    for (let length = 64; ; length += 64) {
      const bytes = await this.read(Math.min(length, maxLength))
      const end = bytes.indexOf(10)
      this.#rest = Buffer.concat([end < 0 ? bytes : bytes.subarray(end + 1), this.#rest])
      if (end >= 0) return bytes.subarray(0, end).toString('latin1')
      const isComplete = bytes.length < length
      if (isComplete) {
        this.#rest = this.#rest.subarray(bytes.length)
        return bytes.toString('latin1')
      }
    }
  }
}
