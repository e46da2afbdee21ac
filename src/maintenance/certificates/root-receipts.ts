// Receipts of the new root while it replaces another one: stored per identity and router, and only meanwhile.
//
// Clients keep the bundle of their enrollment, so a new root is cross-signed by the previous one until they have fetched
// it.
import { type Kysely, sql } from 'kysely'
import { toPlainName } from '../../access/advice/remedies.ts'
import { authenticators } from '../../definitions/resources/authenticators.ts'
import { edgeRouters } from '../../definitions/resources/edge-routers.ts'
import { enrollments } from '../../definitions/resources/enrollments.ts'
import { identities } from '../../definitions/resources/identities.ts'
import { routers } from '../../definitions/resources/routers.ts'
import type { Log } from '../../foundation/log.ts'
import type { Authority } from '../../pki/authority.ts'
import type { Database } from '../../storage/database.ts'
import { prepareQuery } from '../../storage/prepared-queries.ts'
import type { AnyChange } from '../../storage/transactions/changes.ts'
import type { Caller, Context, WriteContext } from '../../storage/transactions/context.ts'

/** An identity or a router that is enrolled, and may know only the root that is being replaced. */
export interface MissingHolder {
  readonly kind: 'identity' | 'router'
  readonly id: string
  readonly name: string
  /** The command by which it learns the new root, or who does. */
  readonly remedy: string
}

type MissingRow = Omit<MissingHolder, 'remedy'> & { readonly way: keyof typeof REMEDIES }

/** By the way in which a holder learns the new root. Routers read the authorities that they trust from a file of their enrollment. */
const REMEDIES = {
  edge: (name: string) =>
    `controller edge-router re-enroll ${name} --jwt-file ${name}.jwt, then on its machine: ziti router enroll ${name}.yml --jwt ${name}.jwt, and restart it`,
  transit: (name: string) =>
    `controller router delete ${name}, then controller router create ${name} --jwt-file ${name}.jwt, and enroll it again`,
  extend: (name: string) => `controller identity request-extend ${name}`,
  use: () => 'its next command with the profile: controller whoami',
} as const

const findReceipt = prepareQuery((db, holderId: string, fingerprint: string) =>
  db
    .selectFrom('root_receipts')
    .select('holderId')
    .where('holderId', '=', holderId)
    .where('fingerprint', '=', fingerprint),
)

const findRouterName = prepareQuery((db, id: string) => db.selectFrom('routers').select('name').where('id', '=', id))
const findIdentityName = prepareQuery((db, id: string) =>
  db.selectFrom('identities').select('name').where('id', '=', id),
)

/**
 * A client knows the new root if it fetched the certificate store with its API session or its client certificate, or if it
 * received a certificate, since the replacement of the root began. No other time writes a receipt.
 */
export class RootReceipts {
  readonly #authority: Authority
  readonly #log: Log

  constructor(authority: Authority, log: Log) {
    this.#authority = authority
    this.#log = log
  }

  /** Stores that an identity or a router received the bundle that is in use now. */
  async record(context: Context, holderId: string): Promise<void> {
    if (!this.#authority.previousRoot) return
    if (!(await this.#hasReceipt(context, holderId))) await context.write((tx) => this.#store(tx, holderId))
  }

  /** Stores who received the bundle by these changes of a transaction: clients that enrolled or extended their certificate. */
  async follow(tx: WriteContext): Promise<void> {
    if (!this.#authority.previousRoot) return
    for (const change of tx.uncommitted.own) {
      const holderId = findRecipient(tx.caller, change)
      if (typeof holderId === 'string') await this.#store(tx, holderId)
    }
  }

  async #hasReceipt({ db }: Pick<Context, 'db'>, holderId: string): Promise<boolean> {
    return (await findReceipt(db, holderId, this.#authority.rootFingerprint)).length > 0
  }

  /** Stores and logs a receipt, once. If the commit fails, the holder requests the bundle again. */
  async #store(tx: WriteContext, holderId: string): Promise<void> {
    if (await this.#hasReceipt(tx, holderId)) return
    await storeReceipt(tx, holderId, this.#authority.rootFingerprint)
    const [router] = await findRouterName(tx.db, holderId)
    const [identity] = await findIdentityName(tx.db, holderId)
    if (router) this.#log.info({ router: router.name }, 'a router has received the new root')
    // Identities are many: a large network must not fill the log.
    else if (identity) this.#log.debug({ identity: identity.name }, 'an identity has received the new root')
  }

  /** Whether a root is being replaced. */
  get isReplacing(): boolean {
    return this.#authority.previousRoot !== undefined
  }

  /** Removes the receipts, which nothing reads once the replacement has ended. */
  async clear(tx: WriteContext): Promise<void> {
    await tx.db.deleteFrom('root_receipts').execute()
  }

  /** Up to `limit` of those that have not fetched the new root, routers first, by name; none if no root is being replaced. */
  async listMissing(db: Kysely<Database>, limit: number): Promise<readonly MissingHolder[]> {
    if (!this.#authority.previousRoot) return []
    const { rows } = await sql<MissingRow>`${this.#selectMissing()} order by kind desc, name limit ${limit}`.execute(db)
    return rows.map(({ way, ...holder }) => ({ ...holder, remedy: REMEDIES[way](toPlainName(holder)) }))
  }

  /** How many have not fetched the new root. */
  async countMissing(db: Kysely<Database>): Promise<number> {
    if (!this.#authority.previousRoot) return 0
    const { rows } = await sql<{ n: number }>`select count(*) as n from (${this.#selectMissing()}) missing`.execute(db)
    return rows[0]?.n ?? 0
  }

  /** An identity without a credential has never received a bundle. */
  #selectMissing() {
    const fingerprint = this.#authority.rootFingerprint
    const hasReceipt = (id: string) =>
      sql`exists (select 1 from root_receipts r where r."holderId" = ${sql.ref(id)} and r.fingerprint = ${fingerprint})`
    const isIssuedHere = sql`a.method = 'cert' and a."caId" is null`
    return sql`select 'identity' as kind, i.id as id, i.name as name,
        case when exists (select 1 from authenticators a where a."identityId" = i.id and ${isIssuedHere})
          then 'extend' else 'use' end as way
      from identities i
      where (i."externalId" is not null or exists (select 1 from authenticators a where a."identityId" = i.id))
        and not ${hasReceipt('i.id')}
      union all select 'router' as kind, t.id as id, t.name as name,
        case when t."isEdge" = 1 then 'edge' else 'transit' end as way
      from routers t
      where t."isVerified" = 1 and not ${hasReceipt('t.id')}`
  }
}

async function storeReceipt({ db, clock }: WriteContext, holderId: string, fingerprint: string): Promise<void> {
  const fetchedAt = clock.now()
  await db
    .insertInto('root_receipts')
    .values({ holderId, fingerprint, fetchedAt })
    .onConflict((conflict) => conflict.column('holderId').doUpdateSet({ fingerprint, fetchedAt }))
    .execute()
}

/** Returns the identity or router that received the bundle along with a change, if one did. */
function findRecipient(caller: Caller, { resource, operation, id, before, after }: AnyChange): unknown {
  const isNewCertificate = after !== undefined && before?.certPem !== after.certPem
  switch (resource) {
    // An enrollment that a client without a session removes is one that it completed. Before that, it fetched the bundle.
    case enrollments.plural:
      if (operation !== 'delete' || caller.kind !== 'anonymous') return undefined
      return before?.identityId ?? before?.edgeRouterId ?? before?.transitRouterId
    // By an authority of an operator, for which no enrollment exists.
    case identities.plural:
      return operation === 'create' && caller.kind === 'anonymous' ? id : undefined
    case authenticators.plural: {
      const isOwn = caller.kind === 'identity' && caller.identityId === after?.identityId
      return operation === 'update' && isNewCertificate && isOwn ? after.identityId : undefined
    }
    case routers.plural:
    case edgeRouters.plural:
      // A router that renews its certificates over its connection, to which the controller itself writes, receives no bundle.
      return operation === 'update' && isNewCertificate && caller.kind !== 'system' ? id : undefined
    default:
      return undefined
  }
}
