// Signing in: a method proves who it is, what is common to all methods decides whether that is enough.
import type { X509Certificate } from 'node:crypto'
import type { Instant } from '../clock.ts'
import type { Context } from '../context.ts'
import { errors } from '../errors.ts'
import { authPolicies } from '../resources/auth-policies.ts'
import type { Entity } from '../resources/define.ts'
import { identities } from '../resources/identities.ts'
import { find, update } from '../store/entities.ts'
import { certificateMethod } from './certificate-method.ts'
import { passwordMethod } from './password-method.ts'

export type Method = 'password' | 'cert' | 'ext-jwt'
export type AuthPolicy = Entity<typeof authPolicies>

/** What a caller presents. */
export interface Credentials {
  readonly username?: string
  readonly password?: string
  /** The certificates of the TLS connection as they were sent, the proven leaf first. */
  readonly certificates: readonly X509Certificate[]
}

/** What a client reports of itself along with its credentials. */
export interface Reported {
  readonly configTypes?: readonly string[]
  readonly envInfo?: Record<string, unknown>
  readonly sdkInfo?: Record<string, unknown>
}

/** Whose credentials these are. `isGood` is only known once the identity's policy has been asked. */
export interface Proof {
  readonly identityId: string
  readonly authenticatorId: string
  readonly isCertExtendable?: boolean
  readonly improperClientCertChain?: boolean
  /** Whether the policy lets this proof in. */
  isAdmitted(policy: AuthPolicy): boolean
}

const methods: Readonly<Record<Method, (context: Context, credentials: Credentials) => Promise<Proof | undefined>>> = {
  password: passwordMethod,
  cert: certificateMethod,
  'ext-jwt': () => Promise.resolve(undefined),
}

/**
 * Signs in and returns the id of the new session.
 * @throws INVALID_AUTH whatever the reason: who exists, is locked or may not is for the log alone
 */
export async function authenticate(
  context: Context,
  method: Method,
  credentials: Credentials,
  reported: Reported,
): Promise<string> {
  const proof = await methods[method](context, credentials)
  if (!proof) throw errors.INVALID_AUTH(undefined, { cause: `the ${method} credentials prove nothing` })
  const identity = await find(context, identities, proof.identityId)
  if (!identity) throw errors.INVALID_AUTH(undefined, { cause: `identity ${proof.identityId} is gone` })
  if (isDisabled(identity, context.clock.now())) {
    throw errors.INVALID_AUTH(undefined, { cause: `identity ${identity.id} is disabled` })
  }
  const policy = await find(context, authPolicies, identity.authPolicyId)
  if (!policy || !proof.isAdmitted(policy)) {
    throw errors.INVALID_AUTH(undefined, { cause: `auth policy ${identity.authPolicyId} does not admit it` })
  }
  const configTypes = await knownConfigTypes(context, reported.configTypes ?? [])
  return context.write(async (tx) => {
    const info = changedInfo(identity, reported)
    if (info) await update(tx, identities, identity as never, info, undefined, 'none')
    const { identityId, authenticatorId, isCertExtendable, improperClientCertChain } = proof
    const session = await tx.controller.sessions.insert(tx, {
      identityId,
      authenticatorId,
      ipAddress: context.origin.address ?? '',
      configTypes,
      ...(isCertExtendable ? { isCertExtendable } : {}),
      ...(improperClientCertChain ? { improperClientCertChain } : {}),
    })
    return session.id
  })
}

export interface Disablable {
  readonly disabledAt: Instant | null
  readonly disabledUntil: Instant | null
}

/** Disabled now: without an end, or with one that has not come. */
export function isDisabled(identity: Disablable, now: Instant): boolean {
  return identity.disabledAt !== null && (identity.disabledUntil === null || identity.disabledUntil > now)
}

/** Config types by id or name, as ids; `all` stands for every one; what does not exist is passed over. */
export async function knownConfigTypes(context: Context, wanted: readonly string[]): Promise<string[]> {
  if (wanted.includes('all')) return ['all']
  if (wanted.length === 0) return []
  const rows = await context.db
    .selectFrom('config_types')
    .select('id')
    .where((eb) => eb.or([eb('id', 'in', wanted), eb('name', 'in', wanted)]))
    .execute()
  return rows.map(({ id }) => id)
}

/** What the client reports, where it is other than what is known. */
function changedInfo(
  identity: Entity<typeof identities>,
  { envInfo, sdkInfo }: Reported,
): Record<string, unknown> | undefined {
  const changed: Record<string, unknown> = {}
  if (envInfo && !isSame(envInfo, identity.envInfo)) changed.envInfo = envInfo
  if (sdkInfo && !isSame(sdkInfo, identity.sdkInfo)) changed.sdkInfo = sdkInfo
  return Object.keys(changed).length > 0 ? changed : undefined
}

function isSame(a: Readonly<Record<string, unknown>>, b: Readonly<Record<string, unknown>>): boolean {
  const sorted = (record: Readonly<Record<string, unknown>>) => JSON.stringify(Object.entries(record).sort())
  return sorted(a) === sorted(b)
}
