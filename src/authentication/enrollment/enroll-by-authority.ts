// Enrollment with a certificate that an authority of an operator issued: `ottca` with a token, `ca` without one.
import type { X509Certificate } from 'node:crypto'
import { authenticators } from '../../definitions/resources/authenticators.ts'
import { cas } from '../../definitions/resources/cas.ts'
import { identities } from '../../definitions/resources/identities.ts'
import { type ControllerError, errors } from '../../foundation/errors.ts'
import { newId } from '../../foundation/ids.ts'
import { readCertificateNames } from '../../pki/certificate-names.ts'
import { SignatureBudget } from '../../pki/chains.ts'
import type { PeerCertificates } from '../../pki/peer-certificates.ts'
import { type EntityStore, find, newEntity } from '../../storage/entities/entities.ts'
import type { Context, WriteContext } from '../../storage/transactions/context.ts'
import { readExternalId } from '../authorities/external-id-claim.ts'
import type { CertificateAuthority, RegisteredAuthority } from '../authorities/registered-authority.ts'
import { toCertificateFields } from '../credentials/authenticator-behavior.ts'
import type { ClientTrustStore } from '../sign-in/client-trust.ts'
import type { PresentedIssuers } from '../sign-in/presented-issuers.ts'
import { findFreeIdentityName, formatIdentityName } from './identity-names.ts'
import { consumeEnrollment, type OutstandingEnrollment, requireIdentity } from './outstanding-enrollments.ts'

/** The parts that enroll a client by an authority. */
interface AuthorityEnrollmentParts {
  readonly entities: EntityStore
  readonly auth: { readonly clientTrust: ClientTrustStore; readonly presentedIssuers: PresentedIssuers }
}

/** The client's part of an enrollment by an authority. */
interface AuthorityEnrollmentRequest {
  /** The certificates of the TLS client. */
  readonly peer: PeerCertificates
  /** The name that the client asks for. */
  readonly name?: string
}

const NOTHING = {} as const

/**
 * `ottca`: the certificate becomes the credential of the identity that the token was made for.
 * @throws INVALID_ENROLLMENT_TOKEN, ENROLLMENT_CA_NOT_VALID, CERTIFICATE_FAILED_VALIDATION, CERT_IN_USE
 */
export async function storeCertificateCredential(
  { entities, auth: { clientTrust, presentedIssuers } }: AuthorityEnrollmentParts,
  context: Context,
  enrollment: OutstandingEnrollment,
  { peer }: AuthorityEnrollmentRequest,
): Promise<typeof NOTHING> {
  const { caId } = enrollment
  const identityId = requireIdentity(enrollment)
  const authority = caId === null ? undefined : clientTrust.getRegistered(caId)
  if (!authority) throw errors.INVALID_ENROLLMENT_TOKEN()
  const isOpen = ({ isVerified, isOttCaEnrollmentEnabled }: CertificateAuthority) =>
    isVerified && isOttCaEnrollmentEnabled
  if (!isOpen(authority.record)) throw errors.ENROLLMENT_CA_NOT_VALID()
  const certificates = findPresented(presentedIssuers.listPresented(peer, true), (presented, checks) =>
    clientTrust.isVouchedBy(authority, presented, context.clock.now(), checks),
  )
  const [leaf] = certificates ?? []
  if (!certificates || !leaf) throw errors.CERTIFICATE_FAILED_VALIDATION()
  presentedIssuers.addIntermediates(certificates.slice(1))
  const values = { identityId, method: 'cert', caId: authority.record.id, ...toCertificateFields(leaf) } as const
  await context.write(async (tx) => {
    await consumeEnrollment(entities, tx, enrollment)
    await requireOpenAuthority(tx, values.caId, isOpen, errors.ENROLLMENT_CA_NOT_VALID)
    await entities.insert(tx, authenticators, newEntity(tx, authenticators, values))
  })
  return NOTHING
}

/**
 * `ca`: the certificate makes an identity for itself. If its authority has a claim, the identity has the external id that
 * the certificate names, and no authenticator, so that its certificate can change.
 * @throws ENROLLMENT_NO_VALID_CAS, CERT_FAILED_VALIDATION, MISSING_CERT_CLAIM, CERT_IN_USE, COULD_NOT_VALIDATE if an identity
 * has the external id already
 */
export async function enrollByAuthority(
  { entities, auth: { clientTrust, presentedIssuers } }: AuthorityEnrollmentParts,
  context: Context,
  { peer, name: requestedName }: AuthorityEnrollmentRequest,
): Promise<typeof NOTHING> {
  if (!clientTrust.hasRegistered) throw errors.ENROLLMENT_NO_VALID_CAS()
  let authority: RegisteredAuthority | undefined
  const certificates = findPresented(presentedIssuers.listPresented(peer, false), (presented, checks) => {
    authority = clientTrust.findEnrolling(presented, context.clock.now(), checks)
    return authority !== undefined
  })
  const [leaf] = certificates ?? []
  if (!authority || !certificates || !leaf) throw errors.CERT_FAILED_VALIDATION()
  presentedIssuers.addIntermediates(certificates.slice(1))
  const { id: caId } = authority.record
  const { commonName } = readCertificateNames(leaf)
  const credential = toCertificateFields(leaf)
  await context.write(async (tx) => {
    const isOpen = ({ isAutoCaEnrollmentEnabled }: CertificateAuthority) => isAutoCaEnrollmentEnabled
    const ca = await requireOpenAuthority(tx, caId, isOpen, errors.CERT_FAILED_VALIDATION)
    const externalId = readRequiredExternalId(ca, leaf)
    const id = newId()
    const format = { caId: ca.id, caName: ca.name, commonName, requestedName, identityId: id }
    const name = await findFreeIdentityName(tx, formatIdentityName(ca.identityNameFormat, format), id)
    const values = {
      id,
      name,
      typeId: 'Default',
      isAdmin: false,
      roleAttributes: ca.identityRoles,
      externalId,
    } as const
    await entities.insert(tx, identities, newEntity(tx, identities, values))
    if (externalId !== null) return
    const own = { identityId: id, method: 'cert', caId: ca.id, ...credential } as const
    await entities.insert(tx, authenticators, newEntity(tx, authenticators, own))
  })
  return NOTHING
}

/** The first list of certificates that passes. All share one budget of signature checks. */
function findPresented(
  lists: Iterable<readonly X509Certificate[]>,
  isAccepted: (presented: readonly X509Certificate[], checks: SignatureBudget) => boolean,
): readonly X509Certificate[] | undefined {
  const checks = new SignatureBudget()
  for (const presented of lists) if (isAccepted(presented, checks)) return presented
  return undefined
}

/** Returns the authority as it is now, because another request may have closed it meanwhile. @throws `refuse` if it is closed */
async function requireOpenAuthority(
  tx: WriteContext,
  id: string,
  isOpen: (authority: CertificateAuthority) => boolean,
  refuse: () => ControllerError,
): Promise<CertificateAuthority> {
  const authority = await find(tx, cas, id)
  if (!authority || !isOpen(authority)) throw refuse()
  return authority
}

/** Returns null if the authority has no claim. @throws MISSING_CERT_CLAIM */
function readRequiredExternalId({ externalIdClaim }: CertificateAuthority, leaf: X509Certificate): string | null {
  if (!externalIdClaim) return null
  const externalId = readExternalId(externalIdClaim, leaf)
  if (externalId === undefined) throw errors.MISSING_CERT_CLAIM()
  return externalId
}
