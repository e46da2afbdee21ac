// Generates identifiers: ULIDs for records, version 4 UUIDs for single-use tokens.
import { randomBytes, randomUUID } from 'node:crypto'
import { monotonicFactory } from 'ulid'

const nextUlid = monotonicFactory(createRandomSource())

/** A new record id: 26 upper-case characters, ascending within this process even inside one millisecond. */
export function newId(): string {
  return nextUlid()
}

/** A new random token in the text form of a version 4 UUID. */
export function newToken(): string {
  return randomUUID()
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

export function isUuid(text: string): boolean {
  return UUID.test(text)
}

const ULID = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/

/** Whether a text has the form of the ids that are made here. */
export function isId(text: string): boolean {
  return ULID.test(text)
}

/** Random numbers in [0, 1) for the ULID library, which asks for one a character; a pool spares it the system calls. */
function createRandomSource(): () => number {
  const pool = randomBytes(1024)
  let nextByte = 0
  return () => {
    if (nextByte === pool.length) {
      randomBytes(pool.length).copy(pool)
      nextByte = 0
    }
    return (pool[nextByte++] ?? 0) / 256
  }
}
