// The key of TLS tickets, in which clients keep their sessions with this controller (RFC 8446 §4.6.1, RFC 5077).
//
// Each resumed session gets a new ticket, so that only the end of its key ends a session. Therefore tickets of a former key are not
// accepted: their clients prove the key of their certificates again.
import { hkdfSync, randomBytes } from 'node:crypto'
import type { Kysely } from 'kysely'
import type { Entity } from '../../definitions/resources/define.ts'
import { ticketKeys } from '../../definitions/resources/ticket-keys.ts'
import type { Instant } from '../../foundation/clock.ts'
import { newId } from '../../foundation/ids.ts'
import type { Database } from '../../storage/database.ts'
import { type EntityStore, newEntity } from '../../storage/entities/entities.ts'
import type { SecretCipher } from '../../storage/secrets/secret-cipher.ts'
import type { Commit } from '../../storage/transactions/changes.ts'
import type { Context } from '../../storage/transactions/context.ts'
import type { DerivedRows } from '../../storage/transactions/projection.ts'

/** How long a session can be resumed, counted from the handshake that it began with: at most. */
export const TICKET_KEY_LIFETIME_MS = 24 * 60 * 60 * 1000

const STORED_BYTES = 32
// OpenSSL takes a name, a key for HMAC-SHA-256 and one for AES-128, 16 bytes each.
const TICKET_KEY_BYTES = 48

interface StoredKey {
  readonly id: string
  readonly createdAt: Instant
  readonly secret: Buffer
}

interface TicketKeysParts {
  readonly cipher: SecretCipher
  readonly entities: EntityStore
}

export class TicketKeys implements DerivedRows {
  readonly kind = 'derived rows'
  readonly name = 'keys of TLS tickets'
  readonly #parts: TicketKeysParts
  readonly #listeners = new Set<() => void>()
  #stored: readonly StoredKey[] = []
  /** The stored key is for all processes; a key of this process is derived from it and a random value. */
  #scope = 'network'
  /** Until a key is stored, tickets are valid in this process only. */
  readonly #unstored = randomBytes(STORED_BYTES)

  constructor(parts: TicketKeysParts) {
    this.#parts = parts
  }

  async rebuild(db: Kysely<Database>): Promise<void> {
    const rows = await db.selectFrom('ticket_keys').selectAll().execute()
    this.#replace(rows.map((row) => this.#toKey(row)))
  }

  apply({ changes }: Commit): void {
    const concerned = changes.filter(({ resource }) => resource === ticketKeys.plural)
    if (concerned.length === 0) return
    const ids = new Set(concerned.map(({ id }) => id))
    const added = concerned.flatMap(({ after }) => (after ? [this.#toKey(after as Entity<typeof ticketKeys>)] : []))
    this.#replace([...this.#stored.filter(({ id }) => !ids.has(id)), ...added])
  }

  /** The key for OpenSSL, which knows one at a time. */
  get current(): Buffer {
    const secret = this.#stored.at(-1)?.secret ?? this.#unstored
    return Buffer.from(hkdfSync('sha256', secret, '', `key of TLS tickets: ${this.#scope}`, TICKET_KEY_BYTES))
  }

  /** Calls `listener` after each replacement of the current key. */
  onChange(listener: () => void): void {
    this.#listeners.add(listener)
  }

  /**
   * Ends all sessions, and makes tickets that only this process accepts: from now on, what it needs to judge clients that resume is in
   * its memory only.
   */
  confineToProcess(): void {
    this.#scope = newId()
    this.#notify()
  }

  /** Replaces the stored key if it is due, or makes the first one. */
  async renewDue(context: Context): Promise<void> {
    const age = context.clock.now() - (this.#stored.at(-1)?.createdAt ?? Number.NEGATIVE_INFINITY)
    // A key of the future was made before the clock was set back.
    if (age < 0 || age >= TICKET_KEY_LIFETIME_MS) await this.replace(context)
  }

  /** Replaces the stored key, which ends all sessions. */
  async replace(context: Context): Promise<void> {
    const { cipher, entities } = this.#parts
    const former = this.#stored.map(({ id }) => id)
    const id = newId()
    const encryptedKey = cipher.encrypt(randomBytes(STORED_BYTES).toString('base64'), toPlace(id))
    await context.write(async (tx) => {
      // Another controller may have replaced it meanwhile.
      const keys = await tx.db.selectFrom('ticket_keys').select('id').execute()
      if (keys.some((key) => !former.includes(key.id))) return
      await entities.removeAllIn(tx, ticketKeys, former)
      await entities.insert(tx, ticketKeys, newEntity(tx, ticketKeys, { id, encryptedKey }))
    })
  }

  #replace(keys: readonly StoredKey[]): void {
    this.#stored = keys.toSorted((a, b) => a.createdAt - b.createdAt)
    this.#notify()
  }

  #notify(): void {
    for (const listener of this.#listeners) listener()
  }

  #toKey({
    id,
    createdAt,
    encryptedKey,
  }: Pick<Entity<typeof ticketKeys>, 'id' | 'createdAt' | 'encryptedKey'>): StoredKey {
    return { id, createdAt, secret: Buffer.from(this.#parts.cipher.decrypt(encryptedKey, toPlace(id)), 'base64') }
  }
}

const toPlace = (id: string) => ({ resource: ticketKeys.plural, id, field: 'encryptedKey' })
