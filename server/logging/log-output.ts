// Writes the log without blocking: lines are queued while the output is busy, and dropped and counted beyond a bound.
import { constants, fstatSync, openSync, write, writeSync } from 'node:fs'

const MAX_QUEUED_BYTES = 1024 * 1024
// A pipe holds 64 KiB unless it was made larger.
const MAX_WRITE_BYTES = 64 * 1024
// How long after a failure the next write is tried. A pipe that is full is read from again sooner than a disk gets room.
const RETRY_FULL_PIPE_MS = 100
const RETRY_FAILED_MS = 1_000

const STDERR = 2

export interface LogOutputOptions {
  /** Is told how many lines were dropped, once lines can be written again. */
  onRecovered(droppedLines: number): void
  /** The destination of the log; standard error by default. */
  readonly fd?: number
  readonly maxQueuedBytes?: number
}

/** A destination for pino. One write is under way at a time, in a thread of its own. */
export class LogOutput {
  readonly #fd: number
  readonly #maxQueuedBytes: number
  readonly #onRecovered: LogOutputOptions['onRecovered']
  #queue: string[] = []
  /** Bytes that were taken out of the queue, and are not written yet. */
  #unwritten: Buffer = Buffer.alloc(0)
  #queuedBytes = 0
  #droppedLines = 0
  #isWriting = false
  #retry: NodeJS.Timeout | undefined

  constructor({ onRecovered, fd = STDERR, maxQueuedBytes = MAX_QUEUED_BYTES }: LogOutputOptions) {
    this.#fd = withoutBlocking(fd)
    this.#maxQueuedBytes = maxQueuedBytes
    this.#onRecovered = onRecovered
    process.once('exit', () => this.#writeLast())
  }

  /** Takes a line, with its newline. Never throws. */
  write(line: string): void {
    const bytes = Buffer.byteLength(line)
    if (this.#queuedBytes + bytes > this.#maxQueuedBytes) {
      this.#droppedLines += 1
      return
    }
    this.#queue.push(line)
    this.#queuedBytes += bytes
    if (!this.#isWriting && this.#retry === undefined) this.#writeNext()
  }

  #writeNext(): void {
    if (this.#unwritten.length === 0) this.#unwritten = this.#takeLines()
    if (this.#unwritten.length === 0) return
    this.#isWriting = true
    write(this.#fd, this.#unwritten, (error, written) => {
      this.#isWriting = false
      if (error) this.#retryLater(error)
      else this.#advance(written)
    })
  }

  #advance(written: number): void {
    this.#unwritten = this.#unwritten.subarray(written)
    this.#queuedBytes -= written
    if (this.#droppedLines > 0 && this.#queuedBytes === 0) {
      const dropped = this.#droppedLines
      this.#droppedLines = 0
      this.#onRecovered(dropped)
    }
    if (!this.#isWriting) this.#writeNext()
  }

  #retryLater(error: NodeJS.ErrnoException): void {
    const delay = error.code === 'EAGAIN' ? RETRY_FULL_PIPE_MS : RETRY_FAILED_MS
    this.#retry = setTimeout(() => {
      this.#retry = undefined
      this.#writeNext()
    }, delay)
    // A pending retry must not keep the process alive.
    this.#retry.unref()
  }

  #takeLines(): Buffer {
    let count = 0
    for (let bytes = 0; count < this.#queue.length && bytes < MAX_WRITE_BYTES; count++) {
      bytes += Buffer.byteLength(this.#queue[count] as string)
    }
    return Buffer.from(this.#queue.splice(0, count).join(''))
  }

  /** At an exit that waits for nothing. What is under way is written by its thread, or cannot be written. */
  #writeLast(): void {
    if (this.#isWriting) return
    try {
      writeSync(this.#fd, Buffer.concat([this.#unwritten, Buffer.from(this.#queue.join(''))]))
    } catch {
      // The log itself is the only place for errors.
    }
  }
}

/**
 * A descriptor for the same file whose writes fail with EAGAIN where they would block. A thread that is blocked in a write
 * would keep the process from ending.
 */
function withoutBlocking(fd: number): number {
  // Files do not block, and a second descriptor would have a position of its own.
  if (fstatSync(fd).isFile()) return fd
  try {
    return openSync(`/dev/fd/${fd}`, constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY)
  } catch {
    // Sockets cannot be opened by name. Node makes those among its standard streams non-blocking at their first use.
    void process.stderr
    return fd
  }
}
