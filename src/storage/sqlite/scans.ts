// Reads of many records, queued for a thread: one for administrators, and one for all other callers.
//
// The compiler of filters adds up what a filter costs for one record, and bounds it (`filter/compile.ts`). If the cost for
// all records of the tables together may exceed `PlanningCosts.maxUnguarded`, the statement counts its steps as it runs: below
// that bound it completes on the main thread, in microseconds; above it, it is interrupted (`cost-guard.ts`) and run again
// here, on a connection of its own and for a bounded time. If the thread is not available, such reads are rejected with
// 503, and all others continue. An offline command works in the same way.
import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { CompiledQuery } from 'kysely'
import { errors } from '../../foundation/errors.ts'
import type { Reader } from '../store.ts'
import type { DatabaseFiles } from './database-files.ts'
import { toBindable } from './executor.ts'
import type { ScanReply, ScanRequest } from './scan-thread.ts'
import { translateSqliteError } from './sqlite-errors.ts'

const MAX_SCAN_MS = 5_000
// The request has timed out by then, so its result would be useless.
const MAX_WAIT_MS = 10_000
const MAX_WAITING = 64
const MAX_PER_READER = { administrators: 16, others: 2 } as const
const RETRY_AFTER_SECONDS = 5

// Tests run the sources, installations the compiled files.
const THREAD = new URL(`./scan-thread${extname(import.meta.url)}`, import.meta.url)

/** Rows of one snapshot of the database, read in batches. */
export interface Cursor {
  /** The next rows; none at the end. */
  next(count: number): Promise<readonly unknown[]> | readonly unknown[]
  close(): void
}

export class Scans {
  readonly #administrators: ScanThread
  readonly #others: ScanThread
  readonly #files: DatabaseFiles
  readonly #timeoutMs: number
  #lastCursor = 0
  #started = 0

  /**
   * @param files the files of the writing connection, because a thread must not read other ones
   * @param timeoutMs how long a read may take before it is refused
   * @param maxWaitMs how long a read may wait for its turn before it is refused
   */
  constructor(file: string, files: DatabaseFiles, timeoutMs = MAX_SCAN_MS, maxWaitMs = MAX_WAIT_MS) {
    this.#files = files
    this.#administrators = new ScanThread(file, MAX_PER_READER.administrators, maxWaitMs)
    this.#others = new ScanThread(file, MAX_PER_READER.others, maxWaitMs)
    this.#timeoutMs = timeoutMs
  }

  /** The number of reads that were started. */
  get started(): number {
    return this.#started
  }

  /**
   * All rows of a query.
   * @throws INVALID_FILTER if it takes too long, SERVER_TOO_MANY_REQUESTS if too many reads wait for their turn
   */
  async rows<Row>({ sql, parameters }: CompiledQuery<Row>, reader: Reader): Promise<Row[]> {
    this.#started += 1
    const statement = { sql, parameters: toBindable(parameters), timeoutMs: this.#timeoutMs }
    return (await this.#selectThread(reader).request({ kind: 'rows', ...statement }, reader)) as Row[]
  }

  /** The rows of a query, in batches. Its methods throw as `rows` does. */
  cursor({ sql, parameters }: CompiledQuery, reader: Reader): Cursor {
    this.#started += 1
    const thread = this.#selectThread(reader)
    const cursor = ++this.#lastCursor
    const timeoutMs = this.#timeoutMs
    let state: 'new' | 'open' | 'closed' = 'new'
    return {
      async next(count) {
        if (state === 'new') {
          state = 'open'
          await thread.request({ kind: 'open', cursor, sql, parameters: toBindable(parameters) }, reader)
        }
        return state === 'closed' ? [] : thread.request({ kind: 'next', cursor, count, timeoutMs }, reader)
      },
      close() {
        if (state === 'open') thread.post({ kind: 'close', cursor }, reader)
        state = 'closed'
      },
    }
  }

  async close(): Promise<void> {
    await Promise.all([this.#administrators.close(), this.#others.close()])
  }

  #selectThread({ isAdministrator }: Reader): ScanThread {
    try {
      this.#files.requirePresent()
    } catch (error) {
      throw translateSqliteError(error)
    }
    return isAdministrator ? this.#administrators : this.#others
  }
}

interface ScanJob {
  readonly request: ScanRequest
  readonly reader: Reader
  /** Monotonic milliseconds. */
  readonly since: number
  resolve(rows: readonly unknown[]): void
  reject(error: unknown): void
}

/** One thread and its queue. It starts when it is needed, and again after a failure. */
class ScanThread {
  readonly #file: string
  readonly #maxPerReader: number
  readonly #maxWaitMs: number
  /** The thread works on the first. Those of one reader stay in the order of their requests. */
  #jobs: ScanJob[] = []
  #worker: Worker | undefined
  #isClosed = false

  constructor(file: string, maxPerReader: number, maxWaitMs: number) {
    this.#file = file
    this.#maxPerReader = maxPerReader
    this.#maxWaitMs = maxWaitMs
  }

  /** @throws SERVER_TOO_MANY_REQUESTS if too many reads of the reader, or of all readers, wait already */
  request(request: ScanRequest, reader: Reader): Promise<readonly unknown[]> {
    const own = this.#jobs.filter((job) => job.reader.id === reader.id && job.request.kind !== 'close')
    if (this.#jobs.length >= MAX_WAITING || own.length >= this.#maxPerReader) {
      const cause = `${own.length} reads of ${reader.id} and ${this.#jobs.length} in all wait for their turn`
      throw errors.SERVER_TOO_MANY_REQUESTS(undefined, { cause, retryAfterSeconds: RETRY_AFTER_SECONDS })
    }
    return this.#add(request, reader)
  }

  /** Sends a request without waiting for its reply. */
  post(request: ScanRequest, reader: Reader): void {
    if (this.#worker) void this.#add(request, reader).catch(() => {})
  }

  async close(): Promise<void> {
    this.#isClosed = true
    const worker = this.#worker
    this.#fail(new Error('the store was closed'))
    await worker?.terminate()
  }

  #add(request: ScanRequest, reader: Reader): Promise<readonly unknown[]> {
    return new Promise((resolve, reject) => {
      this.#jobs.push({ request, reader, since: performance.now(), resolve, reject })
      if (this.#jobs.length === 1) this.#send()
    })
  }

  #send(): void {
    const first = this.#jobs[0]
    if (!first) this.#worker?.unref()
    else if (this.#isClosed) this.#fail(new Error('the store was closed'))
    else {
      this.#worker ??= this.#start()
      // Only a request keeps the process alive.
      this.#worker.ref()
      this.#worker.postMessage(first.request)
    }
  }

  #start(): Worker {
    const worker = new Worker(THREAD, { workerData: this.#file })
    const fail = (error: unknown) => {
      if (this.#worker === worker) this.#fail(error)
    }
    worker.on('message', (reply: ScanReply) => this.#settle(reply))
    worker.on('error', fail)
    worker.on('exit', (code) => fail(new Error(`the thread for reads ended with ${code}`)))
    return worker
  }

  #settle(reply: ScanReply): void {
    const first = this.#jobs.shift()
    if ('rows' in reply) first?.resolve(reply.rows)
    else first?.reject(toScanError(reply.failure))
    if (first) this.#passTurn(first.reader)
    this.#refuseOverdue()
    this.#send()
  }

  /**
   * Refuses reads that waited for too long: they would keep the thread busy for requests that have timed out, or whose client
   * is gone.
   */
  #refuseOverdue(): void {
    const overdue = (job: ScanJob | undefined) =>
      job && job.request.kind !== 'close' && performance.now() - job.since > this.#maxWaitMs
    while (overdue(this.#jobs[0])) {
      const cause = `the read waited for its turn for more than ${this.#maxWaitMs} ms`
      this.#jobs
        .shift()
        ?.reject(errors.SERVER_TOO_MANY_REQUESTS(undefined, { cause, retryAfterSeconds: RETRY_AFTER_SECONDS }))
    }
  }

  /** Readers take turns, so that none waits for more than one read of a reader with many waiting. */
  #passTurn({ id }: Reader): void {
    const next = this.#jobs.findIndex(({ reader }) => reader.id !== id)
    if (next > 0) this.#jobs.unshift(...this.#jobs.splice(next, 1))
  }

  /** Refuses the waiting reads. The next request starts a new thread. */
  #fail(error: unknown): void {
    this.#worker = undefined
    for (const { reject } of this.#jobs.splice(0)) {
      reject(errors.STORAGE_UNAVAILABLE(undefined, { cause: error, retryAfterSeconds: RETRY_AFTER_SECONDS }))
    }
  }
}

function toScanError({ message, code, isTooCostly }: Extract<ScanReply, { failure: unknown }>['failure']): unknown {
  if (isTooCostly) {
    const reason = 'the query looks at more than it can in the time it has: ask for less at a time'
    return errors.INVALID_FILTER({ code: 'INVALID_FILTER', message: reason })
  }
  return translateSqliteError(Object.assign(new Error(message), { code }))
}
