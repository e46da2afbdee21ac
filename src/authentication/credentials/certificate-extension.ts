// The extension of a certificate: its holder exchanges it for a new one in two steps, so that a lost response does not lock it out.
import type { X509Certificate } from 'node:crypto'
import { authenticators } from '../../definitions/resources/authenticators.ts'
import { toIsoTime } from '../../foundation/clock.ts'
import { type ControllerError, errors, notFoundError } from '../../foundation/errors.ts'
import type { Authority } from '../../pki/authority.ts'
import {
  computeFingerprint256,
  computePublicKeyPrint,
  type EncodedCertificate,
  toCertificatePem,
} from '../../pki/certificates.ts'
import { EXTENSION_OIDS, readExtensions } from '../../pki/extensions.ts'
import { parsePemBlocks } from '../../pki/pem.ts'
import { readSigningRequest } from '../../pki/requests.ts'
import { isRenewalHeld } from '../../pki/trial.ts'
import type { Config } from '../../settings/settings.ts'
import { type EntityStore, find } from '../../storage/entities/entities.ts'
import type { Context, ReadContext } from '../../storage/transactions/context.ts'
import { permissionDeniedError } from '../api-sessions/caller-errors.ts'
import type { ClientTrustStore } from '../sign-in/client-trust.ts'
import { type Authenticator, toCertificateFields } from './authenticator-behavior.ts'

// Each entry holds two certificates, and the audit holds all of them.
const MAX_LOG_ENTRIES = 5

/** The parts that extend certificates. */
interface ExtendCertificateParts {
  readonly entities: EntityStore
  readonly authority: Authority
  readonly config: Pick<Config, 'adoption.trialEnds'>
  readonly auth: { readonly clientTrust: ClientTrustStore }
}

/** PEM of the new certificate with its intermediate, and of the controller's authorities. */
interface ExtendedCertificate {
  readonly clientCert: string
  readonly ca: string
}

/** An authenticator of the controller's own certificates, with its certificate. */
type ExtendableAuthenticator = Authenticator & { readonly certPem: string }

/**
 * Issues the next certificate of an authenticator. The current one remains valid, and the next one is not accepted for
 * sign-in, until `verifyExtension`. A further extension replaces the next one.
 * @param current the client's certificate of the TLS connection, which must be the current one, and may be expired
 * @throws UNAUTHORIZED if the connection presents another certificate, or the authenticator belongs to another identity;
 * NOT_FOUND; CAN_NOT_UPDATE_AUTHENTICATOR if the controller did not issue the certificate, or an adopted network is on trial;
 * COULD_NOT_PROCESS_CSR
 */
export async function extendCertificate(
  { entities, authority, config, auth }: ExtendCertificateParts,
  context: Context,
  identityId: string,
  id: string,
  { current, csr }: { readonly current: X509Certificate | undefined; readonly csr: string },
): Promise<ExtendedCertificate> {
  if (!current || current.ca) throw certificateRequiredError()
  const now = context.clock.now()
  await requireCurrent(context, identityId, id, current)
  if (!auth.clientTrust.isOwnClient(current, now)) throw certificateRequiredError()
  const trialEnds = config['adoption.trialEnds']
  if (isRenewalHeld(current, trialEnds, now)) {
    const message = `certificates are not extended while the network is on trial until ${toIsoTime(trialEnds)}`
    throw errors.CAN_NOT_UPDATE_AUTHENTICATOR({ code: 'ADOPTION_ON_TRIAL', message })
  }
  const names = readExtensions(current).get(EXTENSION_OIDS.subjectAlternativeName)
  const next = authority.issueClient(readSigningRequest(csr), now, names ? { names: { encoded: names.value } } : {})
  await context.write(async (tx) => {
    // Another request may have verified an extension meanwhile.
    const authenticator = await requireCurrent(tx, identityId, id, current)
    await entities.update(tx, authenticators, authenticator, { unverifiedCertPem: toCertificatePem(next) })
  })
  return { clientCert: authority.clientChainPem(next), ca: authority.bundlePem }
}

/**
 * Makes the next certificate of an authenticator the current one, because its holder has received it.
 * @param pem the next certificate; certificates after it are ignored
 * @throws UNAUTHORIZED if the authenticator belongs to another identity; NOT_FOUND; CAN_NOT_UPDATE_AUTHENTICATOR if no
 * extension is outstanding; INVALID_CLIENT_CERT if it is another certificate
 */
export async function verifyExtension(
  entities: EntityStore,
  context: Context,
  identityId: string,
  id: string,
  pem: string,
): Promise<void> {
  await context.write(async (tx) => {
    const authenticator = await requireExtendable(tx, identityId, id)
    const { unverifiedCertPem } = authenticator
    if (unverifiedCertPem === null) {
      throw errors.CAN_NOT_UPDATE_AUTHENTICATOR({ message: 'no extension of its certificate is outstanding' })
    }
    const next = findFirstCertificate(unverifiedCertPem)
    const received = findFirstCertificate(pem)
    if (!next || !received?.raw.equals(next.raw)) throw errors.INVALID_CLIENT_CERT()
    await entities.update(tx, authenticators, authenticator, {
      ...toCertificateFields(next),
      unverifiedCertPem: null,
      isExtendRequested: false,
      isKeyRollRequested: false,
      extendLog: [...authenticator.extendLog, toLogEntry(tx, authenticator, next)].slice(-MAX_LOG_ENTRIES),
    })
  })
}

/** Returns the authenticator, if the certificate is its current one. */
async function requireCurrent(
  context: Pick<ReadContext, 'db'>,
  identityId: string,
  id: string,
  current: X509Certificate,
): Promise<ExtendableAuthenticator> {
  const authenticator = await requireExtendable(context, identityId, id)
  if (authenticator.fingerprint256 !== computeFingerprint256(current)) throw certificateRequiredError()
  return authenticator
}

async function requireExtendable(
  context: Pick<ReadContext, 'db'>,
  identityId: string,
  id: string,
): Promise<ExtendableAuthenticator> {
  const authenticator = await find(context, authenticators, id)
  if (!authenticator) throw notFoundError('authenticator', id)
  // Clients know 401 here, not 404. It comes before the method, which is not for other identities.
  if (authenticator.identityId !== identityId)
    throw permissionDeniedError('the authenticator belongs to another identity')
  const { certPem, isIssuedByNetwork } = authenticator
  if (certPem === null || !isIssuedByNetwork) {
    throw errors.CAN_NOT_UPDATE_AUTHENTICATOR({ message: 'this controller did not issue a certificate for it' })
  }
  return { ...authenticator, certPem }
}

function toLogEntry(
  { clock }: Pick<ReadContext, 'clock'>,
  { certPem }: ExtendableAuthenticator,
  next: EncodedCertificate,
) {
  const previous = findFirstCertificate(certPem)
  return {
    extendedAt: toIsoTime(clock.now()),
    previousCert: certPem,
    newCert: toCertificatePem(next),
    isNewPrivateKey: !previous || computePublicKeyPrint(previous) !== computePublicKeyPrint(next),
  }
}

function findFirstCertificate(pem: string): EncodedCertificate | undefined {
  const block = parsePemBlocks(pem).find(({ label }) => label === 'CERTIFICATE')
  return block && { raw: block.bytes }
}

function certificateRequiredError(): ControllerError {
  return errors.UNAUTHORIZED({
    code: 'CERTIFICATE_REQUIRED',
    message: 'the connection must present the current certificate of the authenticator',
  })
}
