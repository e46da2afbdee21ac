// Compares the rows of this controller with those of the others, at positions that all come to: each says what its rows were there.
//
// They are every 10,000 commits, and whenever a commit asks for it, as before a snapshot is made. A controller whose rows are wrong ends,
// and its next start rebuilds them.
import { createHash } from 'node:crypto'
import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { Log } from '../../foundation/log.ts'
import { getDataPaths, isOwnedByOther } from '../../settings/data-directory.ts'
import type { RowObserver } from '../commit-log.ts'
import { type LogCipher, LogPayloadError } from '../postgres/log-cipher.ts'
import { type LogDatabase, withLogConnection } from '../postgres/log-connection.ts'
import { openForReading } from '../sqlite/connection.ts'
import { digestRows, type RowDigests } from '../sqlite/row-digest.ts'
import { type CommitRecorder, RowsDivergedError } from '../store.ts'
import type { Commit } from '../transactions/changes.ts'
import type { Context } from '../transactions/context.ts'
import { type Judgement, judgeDigests, type NodeDigests } from './digest-judgement.ts'
import type { DigestReply } from './digest-thread.ts'

const EVERY_COMMITS = 10_000
// Longer than a thread takes to start on a busy machine. Without a snapshot by then, this controller does not take part.
const MAX_BEGIN_MS = 5_000

// Tests run the sources, installations the compiled files.
const THREAD = new URL(`./digest-thread${extname(import.meta.url)}`, import.meta.url)

const STORE = `
  insert into controller.digests (position, node, digest, tables, is_rebuilt) values ($1, $2, $3, $4, $5)
  on conflict (position, node) do update set digest = excluded.digest, tables = excluded.tables, is_rebuilt = excluded.is_rebuilt`

const READ_OTHERS = `
  select node, tables, is_rebuilt as "isRebuilt" from controller.digests
  where position = $1 and node <> $2 and tables is not null`

export interface ComparisonParts {
  /** The data directory. */
  readonly directory: string
  readonly database: LogDatabase
  readonly cipher: LogCipher
  /** The name of this controller. */
  readonly node: string
  readonly log: Log
  /** Whether the rows follow from a snapshot and the log alone. */
  readonly isRebuilt: () => boolean
  /** Stops the process. */
  readonly fail: (error: Error) => void
}

export class RowComparison implements RowObserver, CommitRecorder {
  readonly name = 'row comparison'
  readonly #parts: ComparisonParts
  #isRequested = false
  #running: Promise<void> | undefined
  #worker: Worker | undefined
  /** The rows of this controller, where they were compared last. */
  #own: { readonly position: number; readonly digests: RowDigests } | undefined
  #reported: string | undefined

  constructor(parts: ComparisonParts) {
    this.#parts = parts
  }

  concerns(): boolean {
    return this.#isRequested
  }

  async record(): Promise<true> {
    this.#isRequested = false
    return true
  }

  isDue({ position, recorded }: Commit): boolean {
    return position % EVERY_COMMITS === 0 || recorded?.[this.name] !== undefined
  }

  async observe(position: number): Promise<void> {
    // The one before is not finished: the next one will do.
    if (this.#running) return
    const { directory } = this.#parts
    const digesting = isOwnedByOther(directory) ? this.#digestHere() : this.#digestInThread(position)
    this.#running = digesting.digests
      .then((digests) => this.#store(position, digests))
      .catch((err) => this.#parts.log.warn({ err, position }, 'the rows could not be compared with other controllers'))
      .finally(() => {
        this.#running = undefined
      })
    await digesting.begun
  }

  /** Has all controllers compare their rows as they are after the next commit, which it makes. Settles once this one has. */
  async request(context: Context): Promise<void> {
    await this.#running
    this.#isRequested = true
    await context.write(async () => {})
    await this.#running
  }

  /** Compares with what the others have said of the last such position. Returns whether the rows of this one are right, as far as is known. */
  async compare(): Promise<boolean> {
    const own = this.#own
    if (!own) return true
    const { node, isRebuilt } = this.#parts
    const others = await this.#readOthers(own.position)
    const judgement = judgeDigests({ node, digests: own.digests, isRebuilt: isRebuilt() }, others)
    if (judgement.verdict !== 'same') this.#report(own.position, judgement)
    return judgement.verdict !== 'own rows'
  }

  async close(): Promise<void> {
    await this.#worker?.terminate()
    await this.#running
  }

  #report(position: number, judgement: Exclude<Judgement, { verdict: 'same' }>): void {
    const { log, fail } = this.#parts
    const { verdict, tables, others } = judgement
    const facts = { position, tables, others }
    if (verdict === 'own rows') {
      const difference = `rows of ${tables.join(', ')} differ from those of ${others.join(', ')} at position ${position}`
      fail(new RowsDivergedError(new Error(difference)))
      return
    }
    // Logged once, because it goes on until the others are rebuilt.
    const key = JSON.stringify([verdict, facts])
    if (this.#reported === key) return
    this.#reported = key
    if (verdict === 'unclear') log.error(facts, 'the rows of controllers differ although they were rebuilt')
    else log.warn(facts, 'other controllers have rows that differ, and are to rebuild them')
  }

  #digestInThread(position: number) {
    const worker = new Worker(THREAD, { workerData: getDataPaths(this.#parts.directory).database })
    this.#worker = worker
    let begin: () => void = () => {}
    const begun = new Promise<void>((resolve) => {
      begin = resolve
    })
    const timer = setTimeout(begin, MAX_BEGIN_MS)
    const digests = new Promise<RowDigests>((resolve, reject) => {
      worker.on('message', (reply: DigestReply) => {
        if ('digests' in reply) resolve(reply.digests)
        else if (reply.position === position) begin()
        else reject(new Error(`the rows were at ${reply.position} already`))
      })
      worker.on('error', reject)
      worker.on('exit', () => reject(new Error('the thread has ended')))
    }).finally(() => {
      clearTimeout(timer)
      begin()
      this.#worker = undefined
    })
    return { begun, digests }
  }

  /** A thread cannot take on the rights of another account. */
  #digestHere() {
    const connection = openForReading(getDataPaths(this.#parts.directory).database)
    try {
      return { begun: Promise.resolve(), digests: Promise.resolve(digestRows(connection)) }
    } finally {
      connection.close()
    }
  }

  async #store(position: number, digests: RowDigests): Promise<void> {
    const { cipher, node, isRebuilt } = this.#parts
    this.#own = { position, digests }
    const text = JSON.stringify(digests)
    const sealed = cipher.encrypt(Buffer.from(text), describePlace(position, node))
    // The digest of all is for everyone who looks, and decides nothing: who has the database could have written it.
    const digest = createHash('sha256').update(text).digest('hex')
    const row = [position, node, digest, sealed, isRebuilt()]
    await withLogConnection(this.#parts.database, (connection) => connection.run((client) => client.query(STORE, row)))
    await this.compare()
  }

  async #readOthers(position: number): Promise<NodeDigests[]> {
    const { cipher, node } = this.#parts
    const { rows } = await withLogConnection(this.#parts.database, (connection) =>
      connection.run((client) => client.query<StoredDigests>(READ_OTHERS, [position, node])),
    )
    return rows.flatMap(({ node: other, tables, isRebuilt }) => {
      try {
        const text = cipher.decrypt(tables, describePlace(position, other)).toString()
        return [{ node: other, digests: JSON.parse(text) as RowDigests, isRebuilt }]
      } catch (error) {
        // Of a key that was replaced, or not of a controller.
        if (error instanceof LogPayloadError) return []
        throw error
      }
    })
  }
}

interface StoredDigests {
  readonly node: string
  readonly tables: Buffer
  readonly isRebuilt: boolean
}

const describePlace = (position: number, node: string) => `the digests of ${node} at ${position}`
