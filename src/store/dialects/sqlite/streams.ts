// Rows one by one, each stream on a connection of its own: an open iterator keeps its connection on an old state.
import type { CompiledQuery } from 'kysely'
import { errors } from '../../../errors.ts'
import { openForReading, type SqliteDatabase } from './connection.ts'
import { bindable } from './executor.ts'

// While a stream is open the log of the database grows, and starts over only once it is closed.
const MOST_OPEN = 8
const MOST_IDLE = 2
const RETRY_AFTER_SECONDS = 5

/** The consumer took too long. */
export class StreamTimeout extends Error {
  constructor(milliseconds: number) {
    super(`a stream was held open for more than ${milliseconds} ms`)
    this.name = 'StreamTimeout'
  }
}

export class Streams {
  readonly #file: string
  readonly #idle: SqliteDatabase[] = []
  readonly #open = new Set<() => void>()

  constructor(file: string) {
    this.#file = file
  }

  get open(): number {
    return this.#open.size
  }

  /**
   * The rows of a query, on the state of the database at the first of them. The connection is given back at the end, when
   * the consumer leaves, and when time is up, also while the consumer is not asking.
   * @throws SERVER_TOO_MANY_REQUESTS where too many streams are open, StreamTimeout where this one was for too long
   */
  async *rows<Row>({ sql, parameters }: CompiledQuery<Row>, milliseconds: number): AsyncGenerator<Row> {
    if (this.#open.size >= MOST_OPEN) {
      const cause = `${this.#open.size} streams are open`
      throw errors.SERVER_TOO_MANY_REQUESTS(undefined, { cause, retryAfterSeconds: RETRY_AFTER_SECONDS })
    }
    const connection = this.#idle.pop() ?? openForReading(this.#file)
    const rows = connection.prepare(sql).iterate(bindable(parameters))
    let isOver = false
    const end = () => {
      if (isOver) return
      isOver = true
      clearTimeout(timer)
      this.#open.delete(end)
      rows.return?.()
      if (this.#idle.length < MOST_IDLE) this.#idle.push(connection)
      else connection.close()
    }
    const timer = setTimeout(end, milliseconds).unref()
    this.#open.add(end)
    try {
      for (;;) {
        if (isOver) throw new StreamTimeout(milliseconds)
        const next = rows.next()
        if (next.done) return
        yield next.value as Row
      }
    } finally {
      end()
    }
  }

  close(): void {
    for (const end of [...this.#open]) end()
    for (const connection of this.#idle.splice(0)) connection.close()
  }
}
