// The terminators that routers make for the hosts connected to them: made, changed and removed on behalf of a host.
import { type Kysely, sql } from 'kysely'
import { terminators } from '../../definitions/resources/terminators.ts'
import { ControllerError } from '../../foundation/errors.ts'
import type { Database } from '../../storage/database.ts'
import { type EntityStore, find, newEntity } from '../../storage/entities/entities.ts'
import { prepareQuery } from '../../storage/prepared-queries.ts'
import type { Context, WriteContext } from '../../storage/transactions/context.ts'
import { isOneOf } from '../../storage/untyped.ts'
import { RequestRefusedError } from '../client-requests/request-refused.ts'
import { MAX_INSTANCE_ID_LENGTH, type SessionClient } from '../client-requests/session-client.ts'
import {
  identifyClient,
  type RightParts,
  requireSessionRight,
  type SessionRight,
} from '../client-requests/session-right.ts'
import { isPeerDataTooLong, type PeerData } from '../routers/router-connection.ts'
import { MAX_TERMINATOR_COST } from './terminator-costs.ts'
import {
  encodePeerData,
  type LiveTerminator,
  type Precedence,
  type TerminatorDirectory,
} from './terminator-directory.ts'

/** A terminator as a router asks for it. */
export interface HostedTerminator {
  /** Chosen by the router; it is the address, too. */
  readonly id: string
  /** How the router reaches the host: `edge` if a client is connected to it, `tunnel` if it hosts the service itself. */
  readonly binding: 'edge' | 'tunnel'
  readonly cost: number
  readonly precedence: Precedence
  /** By what clients address it; empty if they cannot. */
  readonly instanceId: string
  /** Empty if there is none. */
  readonly instanceSecret: Uint8Array
  /** Data of the host for its clients. */
  readonly peerData: PeerData
}

/** The changed members of a terminator; undefined ones stay. */
export interface TerminatorChange {
  readonly cost?: number | undefined
  readonly precedence?: Precedence | undefined
}

/** The actor that changes a terminator: a client of its router, or the router itself. */
export type TerminatorActor = SessionClient | { readonly routerId: string }

/** How routers reach the terminators that they make for hosts. */
const HOSTED_BINDINGS: readonly string[] = ['edge', 'tunnel']

const MAX_SECRET_BYTES = 4_096

// Far more than a host has connections. The directory does not count what is in the same commit, so a few more may be created.
const MAX_TERMINATORS_OF_SESSION = 1_000

// Routers choose UUIDs in base 62.
const ID = /^[\w-]{1,64}$/

const findOtherHost = prepareQuery<[serviceId: string, instanceId: string, hostId: string], { id: string }>(
  (db, serviceId, instanceId, hostId) =>
    db
      .selectFrom('terminators')
      .select('id')
      .where('serviceId', '=', serviceId)
      .where('identity', '=', instanceId)
      .where('hostId', '!=', hostId)
      .limit(sql.lit(1)),
)

interface HostedTerminatorsParts extends RightParts {
  readonly entities: EntityStore
  readonly directory: TerminatorDirectory
}

export class HostedTerminators {
  readonly #parts: HostedTerminatorsParts

  constructor(parts: HostedTerminatorsParts) {
    this.#parts = parts
  }

  /**
   * Stores a terminator for a host. A request that is repeated succeeds again.
   * @throws RequestRefusedError
   */
  async create(context: Context, host: SessionClient, hosted: HostedTerminator): Promise<void> {
    requireValid(hosted)
    const { routerId } = host
    const use = { ...(await identifyClient(this.#parts, context.db, host)), type: 'Bind' } as const
    const right = await requireSessionRight(this.#parts, context.db, use)
    // A router repeats its requests when it connects again, for all its terminators at once.
    if (this.#isStored(hosted, routerId, right)) return
    await writeOrRefuse(context, async (tx) => {
      // The session may have ended since, and this transaction may share a commit with the one that ends it.
      await this.#store(tx, routerId, await requireSessionRight(this.#parts, tx.db, use), hosted)
    })
  }

  #isStored(hosted: HostedTerminator, routerId: string, { sessionId, identity, serviceId }: SessionRight): boolean {
    const existing = this.#parts.directory.get(hosted.id)
    if (!existing?.isSystem || existing.routerId !== routerId || existing.sessionId !== sessionId) return false
    if (existing.hostId !== identity.id || existing.serviceId !== serviceId) return false
    return (
      existing.binding === hosted.binding && existing.cost === hosted.cost && existing.precedence === hosted.precedence
    )
  }

  async #store(
    tx: WriteContext,
    routerId: string,
    { sessionId, identity, serviceId }: SessionRight,
    hosted: HostedTerminator,
  ): Promise<void> {
    const { directory, entities } = this.#parts
    const { id, binding, cost, precedence, instanceId, instanceSecret, peerData } = hosted
    const existing = await find(tx, terminators, id)
    if (existing) {
      const isSame = existing.isSystem && existing.binding === binding && existing.hostId === identity.id
      if (!isSame || existing.routerId !== routerId || existing.serviceId !== serviceId)
        throw new RequestRefusedError('id-conflict', 'another terminator has this id')
    }
    if (existing?.sessionId !== sessionId && directory.countOfSession(sessionId) >= MAX_TERMINATORS_OF_SESSION)
      throw new RequestRefusedError('other', `the session has ${MAX_TERMINATORS_OF_SESSION} terminators already`)
    if (existing) {
      await entities.update(tx, terminators, existing, { cost, precedence, sessionId }, { audit: 'none' })
      return
    }
    if (instanceId !== '' && (await findOtherHost(tx.db, serviceId, instanceId, identity.id)).length > 0)
      throw new RequestRefusedError('other', 'another identity hosts the service under this instance id')
    const record = newEntity(tx, terminators, {
      id,
      address: id,
      binding,
      routerId,
      serviceId,
      cost,
      precedence,
      identity: instanceId,
      identitySecret: instanceSecret.length > 0 ? Buffer.from(instanceSecret).toString('base64') : null,
      hostId: identity.id,
      sessionId,
      peerData: encodePeerData(peerData),
      isSystem: true,
    })
    await entities.insert(tx, terminators, record, { audit: 'none' })
  }

  /**
   * Changes the cost or the precedence of a terminator.
   * @throws RequestRefusedError if the router has no such terminator of the host, and if a value is out of range
   */
  async update(
    context: Context,
    actor: TerminatorActor,
    id: string,
    { cost, precedence }: TerminatorChange,
  ): Promise<void> {
    if (cost !== undefined) requireValidCost(cost)
    const client = 'token' in actor ? await identifyClient(this.#parts, context.db, actor) : undefined
    await writeOrRefuse(context, async (tx) => {
      const host = client && (await requireSessionRight(this.#parts, tx.db, { ...client, type: 'Bind' }))
      const existing = await find(tx, terminators, id)
      const isOwn = existing?.isSystem && existing.routerId === actor.routerId
      if (!isOwn || (host && (existing.hostId !== host.identity.id || existing.serviceId !== host.serviceId)))
        throw new RequestRefusedError('unknown-terminator', 'the router has no such terminator of this host')
      const changed = { cost: cost ?? existing.cost, precedence: precedence ?? existing.precedence }
      await this.#parts.entities.update(tx, terminators, existing, changed, { audit: 'none' })
    })
  }

  /**
   * Removes those of the terminators that the router has made. Returns how many there were.
   * @throws RequestRefusedError if the controller is busy
   */
  async remove(context: Context, routerId: string, ids: readonly string[]): Promise<number> {
    // Routers repeat what they have asked for a moment ago.
    if ((await findOwn(context.db, routerId, ids)).length === 0) return 0
    return writeOrRefuse(context, async (tx) =>
      this.#parts.entities.removeAllIn(tx, terminators, await findOwn(tx.db, routerId, ids), 'none'),
    )
  }

  /** Removes terminators whose sessions have ended, except those that their hosts have bound by other sessions since. */
  async removeEnded(context: Context, ended: readonly LiveTerminator[]): Promise<void> {
    const [ids, sessionIds] = [ended.map(({ id }) => id), ended.map(({ sessionId }) => sessionId)]
    await context.write(async (tx) => {
      const rows = await tx.db
        .selectFrom('terminators')
        .select('id')
        .where(isOneOf(tx.db, 'id', ids))
        .where(isOneOf(tx.db, 'sessionId', sessionIds))
        .execute()
      const remainingIds = rows.map(({ id }) => id)
      await this.#parts.entities.removeAllIn(tx, terminators, remainingIds, 'none')
    })
  }

  /**
   * Follows that a router does not know the address of a terminator. That of a host is removed, because such an address never
   * becomes valid again; any other one is the last choice until an administrator changes it.
   */
  async reject(context: Context, { id, binding, routerId, address }: LiveTerminator): Promise<void> {
    const { entities } = this.#parts
    await context.write(async (tx) => {
      const record = await find(tx, terminators, id)
      if (record?.routerId !== routerId || record.address !== address) return
      if (HOSTED_BINDINGS.includes(binding)) await entities.removeAllIn(tx, terminators, [id], 'none')
      else if (record.precedence !== 'failed') await entities.update(tx, terminators, record, { precedence: 'failed' })
    })
  }
}

async function findOwn(db: Kysely<Database>, routerId: string, ids: readonly string[]): Promise<string[]> {
  const rows = await db
    .selectFrom('terminators')
    .select('id')
    .where(isOneOf(db, 'id', ids))
    .where('routerId', '=', routerId)
    .where('isSystem', '=', 1)
    .execute()
  return rows.map(({ id }) => id)
}

/** Runs a transaction. @throws RequestRefusedError, with `busy` if the store takes no more at this moment */
async function writeOrRefuse<T>(context: Context, body: (tx: WriteContext) => Promise<T>): Promise<T> {
  try {
    return await context.write(body)
  } catch (error) {
    if (!(error instanceof ControllerError && error.isTemporary)) throw error
    throw new RequestRefusedError('busy', 'the controller is busy')
  }
}

/** @throws RequestRefusedError */
function requireValid({ id, cost, instanceId, instanceSecret, peerData }: HostedTerminator): void {
  if (!ID.test(id)) throw new RequestRefusedError('other', 'the address is not one that routers choose')
  requireValidCost(cost)
  const isTooLong =
    instanceId.length > MAX_INSTANCE_ID_LENGTH ||
    instanceSecret.length > MAX_SECRET_BYTES ||
    isPeerDataTooLong(peerData)
  if (isTooLong) throw new RequestRefusedError('other', 'the instance id, its secret or the peer data are too long')
}

function requireValidCost(cost: number): void {
  if (cost > MAX_TERMINATOR_COST)
    throw new RequestRefusedError('invalid-cost', `a cost is at most ${MAX_TERMINATOR_COST}`)
}
