// Loads the subject of advice once: the identity, the service and the type.
import { sql } from 'kysely'
import type { AuthPolicies } from '../../authentication/auth-policies.ts'
import type { VerifiedMfa } from '../../authentication/mfa/verified-mfa.ts'
import type { ExternalSigners } from '../../authentication/signers/external-signers.ts'
import type { Signers } from '../../authentication/signers/signers.ts'
import type { AnyResource } from '../../definitions/resources/define.ts'
import { notFoundError } from '../../foundation/errors.ts'
import type { PolicyType } from '../../policy/policy-index.ts'
import { selectRows } from '../../storage/entities/subtypes.ts'
import type { Store } from '../../storage/store.ts'
import type { Context } from '../../storage/transactions/context.ts'
import { isOneOf, untyped } from '../../storage/untyped.ts'
import type { Access } from '../access.ts'
import type { NamedRoleBearer } from './chain.ts'

/** The identity as far as the links look at it. */
interface AdvisedIdentity extends NamedRoleBearer {
  readonly disabledAt: number | null
  readonly disabledUntil: number | null
  readonly authPolicyId: string
  readonly externalId: string | null
}

/** The parts that advice is computed with. */
export interface AdviceParts {
  readonly access: Access
  readonly store: Store
  /** Whether clients are told that they can sign in by OpenID Connect. */
  readonly routers: { readonly oidc: { readonly isActive: boolean } }
  readonly auth: {
    readonly policies: AuthPolicies
    readonly verifiedMfa: VerifiedMfa
    readonly signers: Pick<ExternalSigners, 'directory'>
  }
}

/** The question that every link is computed for. */
export interface AdviceQuestion {
  readonly context: Context
  readonly access: Access
  readonly store: Store
  readonly authPolicies: AuthPolicies
  readonly verifiedMfa: VerifiedMfa
  readonly signers: Signers
  readonly identity: AdvisedIdentity
  readonly service: NamedRoleBearer
  readonly type: PolicyType
  /** Whether routers ask any controller about dials: those of other API sessions ask one alone. */
  readonly isEveryControllerAsked: boolean
}

/** @throws NOT_FOUND */
export async function readQuestion(
  { access, store, auth, routers }: AdviceParts,
  context: Context,
  identityId: string,
  serviceId: string,
  type: PolicyType,
): Promise<AdviceQuestion> {
  const identity = await context.db
    .selectFrom('identities')
    .select(['id', 'name', 'roleAttributes', 'disabledAt', 'disabledUntil', 'authPolicyId', 'externalId'])
    .where('id', '=', identityId)
    .executeTakeFirst()
  if (!identity) throw notFoundError('identity', identityId)
  const service = await context.db
    .selectFrom('services')
    .select(['id', 'name', 'roleAttributes'])
    .where('id', '=', serviceId)
    .executeTakeFirst()
  if (!service) throw notFoundError('service', serviceId)
  return {
    context,
    access,
    store,
    authPolicies: auth.policies,
    verifiedMfa: auth.verifiedMfa,
    signers: auth.signers.directory,
    identity: withAttributes(identity),
    service: withAttributes(service),
    type,
    isEveryControllerAsked: routers.oidc.isActive,
  }
}

function withAttributes<R extends { readonly roleAttributes: string }>(row: R): R & { attributes: string[] } {
  return { ...row, attributes: JSON.parse(row.roleAttributes) as string[] }
}

/** A router as far as the links look at it. */
export interface AdvisedRouter extends NamedRoleBearer {
  readonly isDisabled: boolean
  readonly isEnrolled: boolean
}

/** Edge routers by id, in the order of their names. */
export async function readRouters({ db }: Context, ids: readonly string[]): Promise<AdvisedRouter[]> {
  const rows = await db
    .selectFrom('routers')
    .select(['id', 'name', 'roleAttributes', 'disabled', 'isVerified'])
    .where(isOneOf(db, 'id', ids))
    .orderBy('name')
    .execute()
  return rows.map((row) => ({
    ...withAttributes(row),
    isDisabled: row.disabled === 1,
    isEnrolled: row.isVerified === 1,
  }))
}

/** Names by id. */
export async function loadNamesByIds(
  { db }: Pick<Context, 'db'>,
  resource: AnyResource,
  ids: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const rows = await selectRows(db, resource)
    .select(['id', 'name'])
    .where(isOneOf(db, 'id', ids))
    .execute()
  return new Map(rows.map(({ id, name }) => [id as string, name as string]))
}

/** A name that no record of the resource has yet: the one that is wanted, or that with a number. */
export async function findFreeRecordName({ db }: Context, { table }: AnyResource, wanted: string): Promise<string> {
  const rows = await untyped(db)
    .selectFrom(table)
    .select('name')
    .where(sql<boolean>`substr(name, 1, ${wanted.length}) = ${wanted}`)
    .execute()
  const existingNames = new Set(rows.map(({ name }) => name))
  for (let number = 1; ; number++) {
    const name = number === 1 ? wanted : `${wanted}-${number}`
    if (!existingNames.has(name)) return name
  }
}
