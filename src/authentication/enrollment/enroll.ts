// Completing an enrollment: the token is consumed, and what the client brought becomes its credential.

import { authenticators } from '../../definitions/resources/authenticators.ts'
import type { EnrollmentMethod } from '../../definitions/resources/enrollments.ts'
import { errors, invalidError } from '../../foundation/errors.ts'
import type { Authority } from '../../pki/authority.ts'
import type { PeerCertificates } from '../../pki/peer-certificates.ts'
import { readSigningRequest } from '../../pki/requests.ts'
import { newEntity } from '../../storage/entities/entities.ts'
import type { Context } from '../../storage/transactions/context.ts'
import { hasUsableAdministrator } from '../administrators/administrators.ts'
import { type RecoveryParts, restoreAdminAccess } from '../administrators/recovery.ts'
import { toCertificateFields } from '../credentials/authenticator-behavior.ts'
import type { ClientTrustStore } from '../sign-in/client-trust.ts'
import type { PresentedIssuers } from '../sign-in/presented-issuers.ts'
import { enrollByAuthority, storeCertificateCredential } from './enroll-by-authority.ts'
import { issueRouterCertificates, type RouterRequests, storeRouterCertificate } from './enroll-router.ts'
import {
  consumeEnrollment,
  findOutstanding,
  type OutstandingEnrollment,
  requireIdentity,
} from './outstanding-enrollments.ts'

/** The client's part of an enrollment: which members are used depends on the method. */
export interface EnrollmentRequest {
  /** The method the client names, if it does; it must be that of the token. */
  readonly method: string | undefined
  readonly token: string | undefined
  readonly csr?: string
  readonly username?: string
  readonly password?: string
  /** The certificate requests of a router. */
  readonly routerRequests?: RouterRequests
  /** The name that the client asks for. */
  readonly name?: string
  /** The certificates of the TLS client. */
  readonly peer: PeerCertificates
}

/** The members of `data` in the response. */
export type EnrollmentResult = Readonly<Record<string, string>>

/** The parts that enroll a client. */
export interface EnrollmentParts extends RecoveryParts {
  readonly authority: Authority
  readonly auth: RecoveryParts['auth'] & {
    readonly clientTrust: ClientTrustStore
    readonly presentedIssuers: PresentedIssuers
  }
}

type CompletedEnrollment = (
  parts: EnrollmentParts,
  context: Context,
  enrollment: OutstandingEnrollment,
  request: EnrollmentRequest,
) => Promise<EnrollmentResult>

/** For each method, the function that completes an enrollment. */
const completions: Readonly<Record<EnrollmentMethod, CompletedEnrollment>> = {
  ott: issueCertificateCredential,
  updb: storePasswordCredential,
  ottca: storeCertificateCredential,
  erott: issueRouterCredentials,
  trott: issueRouterCredentials,
}

/**
 * @throws INVALID_ENROLL_METHOD, INVALID_ENROLLMENT_TOKEN, ENROLLMENT_EXPIRED, and the errors of the method
 */
export async function enroll(
  parts: EnrollmentParts,
  context: Context,
  request: EnrollmentRequest,
): Promise<EnrollmentResult> {
  const { method, token } = request
  // The one method without a token: the authority of the certificate vouches for the client.
  if (method === 'ca') return enrollByAuthority(parts, context, request)
  if (method !== undefined && !Object.hasOwn(completions, method)) throw errors.INVALID_ENROLL_METHOD()
  const enrollment = token === undefined ? undefined : (await findOutstanding(context.db, token))[0]
  if (!enrollment) throw errors.INVALID_ENROLLMENT_TOKEN()
  if (method !== undefined && enrollment.method !== method) throw errors.INVALID_ENROLL_METHOD()
  if (enrollment.expiresAt <= context.clock.now()) throw errors.ENROLLMENT_EXPIRED()
  return completions[enrollment.method](parts, context, enrollment, request)
}

/** `ott`: a signing request becomes a client certificate, besides those that the identity may have already. */
async function issueCertificateCredential(
  { entities, authority }: EnrollmentParts,
  context: Context,
  enrollment: OutstandingEnrollment,
  { csr }: EnrollmentRequest,
): Promise<EnrollmentResult> {
  const identityId = requireIdentity(enrollment)
  const certificate = authority.issueClient(readSigningRequest(csr ?? ''), context.clock.now())
  const values = { ...toCertificateFields(certificate), isIssuedByNetwork: true, lastAuthResolvedToRoot: true }
  await context.write(async (tx) => {
    await consumeEnrollment(entities, tx, enrollment)
    await entities.insert(tx, authenticators, newEntity(tx, authenticators, { identityId, method: 'cert', ...values }))
  })
  return { cert: authority.clientChainPem(certificate) }
}

/** `updb`: a password for the username of the enrollment. */
async function storePasswordCredential(
  parts: EnrollmentParts,
  context: Context,
  enrollment: OutstandingEnrollment,
  request: EnrollmentRequest,
): Promise<EnrollmentResult> {
  const identityId = requireIdentity(enrollment)
  const username = enrollment.username ?? request.username
  if (!username) throw invalidError('username', 'is required')
  if (!request.password) throw invalidError('password', 'is required')
  const hash = await parts.auth.passwords.hash(context, identityId, request.password)
  await context.write(async (tx) => {
    await consumeEnrollment(parts.entities, tx, enrollment)
    const isBootstrap = enrollment.isBootstrap === 1
    if (isBootstrap && (await hasUsableAdministrator(tx))) throw errors.INVALID_ENROLLMENT_TOKEN()
    await parts.auth.passwords.set(tx, identityId, username, hash)
    if (isBootstrap) await restoreAdminAccess(parts, tx, identityId)
  })
  return { username }
}

/** `erott`, `trott`: two signing requests become the certificates of a router. */
async function issueRouterCredentials(
  { entities, authority }: EnrollmentParts,
  context: Context,
  enrollment: OutstandingEnrollment,
  { routerRequests = {} }: EnrollmentRequest,
): Promise<EnrollmentResult> {
  const { edgeRouterId, transitRouterId } = enrollment
  const id = edgeRouterId ?? transitRouterId
  if (id === null) throw errors.INVALID_ENROLLMENT_TOKEN()
  const router = { id, method: edgeRouterId === null ? ('trott' as const) : ('erott' as const) }
  const { client, ...issued } = issueRouterCertificates(authority, context, router, routerRequests)
  await context.write(async (tx) => {
    await consumeEnrollment(entities, tx, enrollment)
    await storeRouterCertificate(entities, tx, router, client)
  })
  return { ...issued, ca: authority.bundlePem }
}
