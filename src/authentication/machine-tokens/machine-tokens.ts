// The tokens of machines in memory, by the digests of their secrets, with the fields of their identities that requests need.
import type { Kysely } from 'kysely'
import type { Entity } from '../../definitions/resources/define.ts'
import { identities } from '../../definitions/resources/identities.ts'
import { tokens } from '../../definitions/resources/tokens.ts'
import type { Clock, Instant } from '../../foundation/clock.ts'
import type { Database } from '../../storage/database.ts'
import type { Commit } from '../../storage/transactions/changes.ts'
import type { Context } from '../../storage/transactions/context.ts'
import type { DerivedRows } from '../../storage/transactions/projection.ts'
import { type DisabledState, isDisabled } from '../disabling.ts'
import { hashSecret } from './token-secrets.ts'

// How far the time of the last use may lag behind, so that a token that is used all the time causes one write a minute.
const USE_LAG_MS = 60_000

/** The fields of an identity that requests by its tokens need; all of its tokens share one object. */
export interface TokenIdentity extends DisabledState {
  readonly id: string
  readonly name: string
  readonly isAdmin: boolean
  readonly permissions: readonly string[]
  readonly authPolicyId: string
  readonly externalId: string | null
}

type Token = Entity<typeof tokens>

export interface MachineToken
  extends Pick<Token, 'id' | 'name' | 'isAdmin' | 'expiresAt' | 'isTotpComplete' | 'secretHash'> {
  readonly permissions: readonly string[]
  readonly identity: TokenIdentity
  lastUsedAt: Instant | null
}

/** It is removed with its last token. */
type SharedIdentity = TokenIdentity & { tokenCount: number }

export class MachineTokens implements DerivedRows {
  readonly kind = 'derived rows'
  readonly name = 'tokens of machines'
  readonly #clock: Clock
  #byId = new Map<string, MachineToken>()
  #byHash = new Map<string, MachineToken>()
  #identities = new Map<string, SharedIdentity>()
  /** Tokens whose last use is not written yet. */
  readonly #used = new Set<MachineToken>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  async rebuild(db: Kysely<Database>): Promise<void> {
    const rows = await readTokens(db)
    const lastUses = new Map(Array.from(this.#used, ({ id, lastUsedAt }) => [id, lastUsedAt]))
    this.#byId = new Map()
    this.#byHash = new Map()
    this.#identities = new Map()
    this.#used.clear()
    for (const token of rows) {
      const added = this.#add(token)
      const lastUsedAt = lastUses.get(token.id)
      if (lastUsedAt === undefined) continue
      added.lastUsedAt = lastUsedAt
      this.#used.add(added)
    }
  }

  async findDifferences(db: Kysely<Database>): Promise<string[]> {
    const rows = new Map((await readTokens(db)).map((token) => [token.id, token]))
    const toState = ({ isAdmin, permissions, expiresAt, secretHash, identity }: MachineToken) =>
      JSON.stringify([isAdmin, permissions, expiresAt, secretHash, identity.isAdmin, identity.permissions])
    const ids = new Set([...rows.keys(), ...this.#byId.keys()])
    return [...ids].flatMap((id) => {
      const [row, live] = [rows.get(id), this.#byId.get(id)]
      if (!row || !live) return `only ${live ? 'memory' : 'the database'} holds the token ${id}`
      return toState(row) === toState(live) ? [] : `the token ${id} has other rights than its row`
    })
  }

  /** Returns the token of a secret that is accepted now, and notes that it was used. */
  use(secret: string): MachineToken | undefined {
    const hash = hashSecret(secret)
    const candidate = hash === undefined ? undefined : this.#byHash.get(hash)
    const token = candidate && this.get(candidate.id)
    if (token) this.#noteUse(token)
    return token
  }

  /** Returns a token, unless it has expired or its identity is disabled. */
  get(id: string): MachineToken | undefined {
    const token = this.#byId.get(id)
    const now = this.#clock.now()
    return token && token.expiresAt > now && !isDisabled(token.identity, now) ? token : undefined
  }

  #noteUse(token: MachineToken): void {
    const now = this.#clock.now()
    // The clock may have been set back.
    if (token.lastUsedAt !== null && Math.abs(now - token.lastUsedAt) < USE_LAG_MS) return
    token.lastUsedAt = now
    this.#used.add(token)
  }

  /** Writes when the tokens were used last. */
  async flush(context: Context): Promise<void> {
    const uses = Array.from(this.#used, (token) => ({ token, at: token.lastUsedAt ?? 0 }))
    if (uses.length === 0) return
    await context.write(async (tx) => {
      for (const { token, at } of uses) {
        await tx.db.updateTable('tokens').set({ lastUsedAt: at }).where('id', '=', token.id).execute()
        tx.record({ operation: 'update', audit: 'none', resource: tokens.plural, id: token.id, at })
      }
    })
    for (const { token, at } of uses) if (token.lastUsedAt === at) this.#used.delete(token)
  }

  apply({ changes }: Commit): void {
    for (const { resource, operation, id, at, after, identity } of changes) {
      if (resource === identities.plural && after) this.#updateIdentity(after)
      if (resource !== tokens.plural) continue
      // A token is made for an identity that is not disabled.
      if (operation === 'create' && after && identity)
        this.#add({ ...after, identity: { ...identity, disabledAt: null, disabledUntil: null } })
      if (operation === 'update') this.#noteWritten(id, at)
      if (operation === 'delete') this.#remove(id)
    }
  }

  #updateIdentity({ id, name, isAdmin, permissions, authPolicyId, externalId, ...rest }: TokenIdentity): void {
    const { disabledAt, disabledUntil } = rest
    const identity = this.#identities.get(id)
    if (identity)
      Object.assign(identity, { name, isAdmin, permissions, authPolicyId, externalId, disabledAt, disabledUntil })
  }

  #noteWritten(id: string, at: Instant): void {
    const token = this.#byId.get(id)
    if (token && !this.#used.has(token)) token.lastUsedAt = at
  }

  #add({ id, name, isAdmin, permissions, expiresAt, isTotpComplete, secretHash, lastUsedAt, identity }: MachineToken) {
    const shared = this.#identities.get(identity.id) ?? { ...identity, tokenCount: 0 }
    shared.tokenCount += 1
    this.#identities.set(identity.id, shared)
    const token: MachineToken = {
      ...{ id, name, isAdmin, permissions, expiresAt, isTotpComplete, secretHash, lastUsedAt },
      identity: shared,
    }
    this.#byId.set(id, token)
    this.#byHash.set(secretHash, token)
    return token
  }

  #remove(id: string): void {
    const token = this.#byId.get(id)
    if (!token) return
    this.#byId.delete(id)
    this.#byHash.delete(token.secretHash)
    this.#used.delete(token)
    const identity = this.#identities.get(token.identity.id)
    if (identity && --identity.tokenCount === 0) this.#identities.delete(identity.id)
  }
}

async function readTokens(db: Kysely<Database>): Promise<MachineToken[]> {
  const rows = await db
    .selectFrom('tokens as token')
    .innerJoin('identities as identity', 'identity.id', 'token.identityId')
    .select(['token.id', 'token.name', 'token.isAdmin', 'token.permissions', 'expiresAt', 'lastUsedAt', 'secretHash'])
    .select(['isTotpComplete', 'identityId', 'identity.name as identityName', 'identity.isAdmin as isAdministrator'])
    .select(['identity.permissions as heldPermissions', 'authPolicyId', 'externalId', 'disabledAt', 'disabledUntil'])
    .execute()
  return rows.map((row) => ({
    id: row.id,
    name: row.name,
    isAdmin: row.isAdmin === 1,
    permissions: JSON.parse(row.permissions) as string[],
    expiresAt: row.expiresAt,
    lastUsedAt: row.lastUsedAt,
    secretHash: row.secretHash,
    isTotpComplete: row.isTotpComplete === 1,
    identity: {
      id: row.identityId,
      name: row.identityName,
      isAdmin: row.isAdministrator === 1,
      permissions: JSON.parse(row.heldPermissions) as string[],
      authPolicyId: row.authPolicyId,
      externalId: row.externalId,
      disabledAt: row.disabledAt,
      disabledUntil: row.disabledUntil,
    },
  }))
}
