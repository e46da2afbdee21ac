// The rules of every authenticator, for administrators, owners and enrollments alike.
import { X509Certificate } from 'node:crypto'
import type { authenticators } from '../../definitions/resources/authenticators.ts'
import type { Entity } from '../../definitions/resources/define.ts'
import { ControllerError, errors, invalidError } from '../../foundation/errors.ts'
import {
  computeFingerprint,
  computeFingerprint256,
  computePublicKeyPrint,
  type EncodedCertificate,
  readNotBefore,
  toCertificatePem,
} from '../../pki/certificates.ts'
import { parseSinglePemBlock } from '../../pki/pem.ts'
import { isSessionCertificate } from '../../pki/spiffe.ts'
import type { Behavior, Draft } from '../../storage/behavior.ts'
import type { Context, ReadContext, WriteContext } from '../../storage/transactions/context.ts'
import type { ApiSessions } from '../api-sessions/api-sessions.ts'
import { requireNoRouter } from '../router-identities.ts'
import type { ClientTrustStore } from '../sign-in/client-trust.ts'
import { findByCertificate, listAuthenticatorIds } from './credentials.ts'
import type { Passwords } from './passwords.ts'
import { assertUsernameFree, foldUsername } from './usernames.ts'

export type Authenticator = Entity<typeof authenticators>

/** The values that are computed before the transaction, for a record that an administrator or its owner sends. */
export interface PreparedAuthenticator {
  readonly isNew: boolean
  readonly passwordHash?: string
  readonly certificate?: CertificateFields & Pick<Authenticator, 'caId'>
  /** The stored hash that the owner has proven to know the password of. */
  readonly provenHash?: string
}

/** The password as it was sent, and the stored hash that it replaces. */
interface AuthenticatorInputs {
  readonly password?: string | null
  readonly provenHash?: string
}

/** The fields of an authenticator that follow from its certificate. */
export type CertificateFields = Pick<Authenticator, 'certPem' | 'fingerprint' | 'fingerprint256' | 'publicKeyPrint'>

export function toCertificateFields(certificate: EncodedCertificate): CertificateFields {
  return {
    certPem: toCertificatePem(certificate),
    fingerprint: computeFingerprint(certificate),
    fingerprint256: computeFingerprint256(certificate),
    publicKeyPrint: computePublicKeyPrint(certificate),
  }
}

/** The collaborators of the behavior of authenticators. */
interface AuthenticatorBehaviorParts {
  readonly apiSessions: ApiSessions
  readonly passwords: Passwords
  readonly clientTrust: ClientTrustStore
}

export class AuthenticatorBehavior implements Behavior<typeof authenticators, PreparedAuthenticator> {
  readonly #apiSessions: ApiSessions
  readonly #passwords: Passwords
  readonly #clientTrust: ClientTrustStore

  constructor({ apiSessions, passwords, clientTrust }: AuthenticatorBehaviorParts) {
    this.#apiSessions = apiSessions
    this.#passwords = passwords
    this.#clientTrust = clientTrust
  }

  /** @throws COULD_NOT_VALIDATE, MAX_AUTHENTICATOR_METHODS_REACHED, CAN_NOT_UPDATE_AUTHENTICATOR, and by method */
  async prepareCreate(
    context: Context,
    { next }: Draft<typeof authenticators>,
    inputs: AuthenticatorInputs,
  ): Promise<PreparedAuthenticator> {
    await assertPossible(context, next, inputs.password)
    if (next.method === 'cert') return { isNew: true, certificate: this.#readCertificate(next.certPem ?? '') }
    return { isNew: true, ...(await this.#preparePassword(context, next, inputs)) }
  }

  async prepareUpdate(
    context: Context,
    { next, previous }: Draft<typeof authenticators>,
    inputs: AuthenticatorInputs,
  ): Promise<PreparedAuthenticator> {
    if (previous?.method === 'cert' && (inputs.password || next.username !== null)) {
      throw errors.CAN_NOT_UPDATE_AUTHENTICATOR({ message: 'a certificate has neither username nor password' })
    }
    return { isNew: false, ...(await this.#preparePassword(context, next, inputs)) }
  }

  /** @throws USERNAME_TAKEN, CERT_IN_USE, MAX_AUTHENTICATOR_METHODS_REACHED, UNAUTHORIZED */
  async check(
    tx: WriteContext,
    next: Authenticator,
    previous: Authenticator | undefined,
    prepared: PreparedAuthenticator | undefined,
  ): Promise<void> {
    if (prepared?.isNew) await assertMethodFree(tx, next)
    // Another request may have set a password while this one was hashed.
    if (prepared?.provenHash !== undefined && prepared.provenHash !== previous?.passwordHash)
      throw new PasswordChangedError()
    if (prepared?.certificate) Object.assign(next, prepared.certificate)
    if (prepared?.passwordHash) Object.assign(next, { passwordHash: prepared.passwordHash, failedAttempts: 0 })
    if (next.username !== null && next.username !== previous?.username) {
      await assertUsernameFree(tx, next.username, next.identityId)
      next.foldedUsername = foldUsername(next.username)
    }
    if (next.fingerprint256 !== null && next.fingerprint256 !== previous?.fingerprint256) {
      await assertCertificateFree(tx, next)
    }
  }

  /**
   * Ends the sessions of the identity if its password changed, because a stolen one must not outlive the password. The
   * session that asked for the change stays: it is among them only if the owner changes its own password.
   */
  async updated(
    tx: WriteContext,
    { identityId }: Authenticator,
    _previous: Authenticator,
    prepared: PreparedAuthenticator | undefined,
  ): Promise<void> {
    if (prepared?.passwordHash === undefined) return
    const { caller } = tx
    const except = caller.kind === 'identity' ? caller.apiSessionId : undefined
    await this.#apiSessions.revokeAll(tx, { identityId, except })
  }

  async beforeDelete(tx: WriteContext, { id }: Authenticator): Promise<void> {
    await this.#apiSessions.revokeAll(tx, { authenticatorId: id })
  }

  async #preparePassword(
    context: Context,
    { identityId }: Authenticator,
    { password, provenHash }: AuthenticatorInputs,
  ): Promise<Pick<PreparedAuthenticator, 'passwordHash' | 'provenHash'>> {
    const proven = provenHash === undefined ? {} : { provenHash }
    if (!password) return proven
    return { ...proven, passwordHash: await this.#passwords.hash(context, identityId, password) }
  }

  /** The certificate must have been valid when it was issued; its auth policy decides whether it still may be used. */
  #readCertificate(pem: string): CertificateFields & Pick<Authenticator, 'caId'> {
    const certificate = parseCertificatePem(pem)
    if (isSessionCertificate(certificate)) {
      throw errors.CERTIFICATE_FAILED_VALIDATION({ field: 'certPem', reason: 'is valid for one API session only' })
    }
    const verdict = this.#clientTrust.findAuthority(certificate, readNotBefore(certificate))
    if (!verdict) {
      throw errors.CERTIFICATE_FAILED_VALIDATION({
        field: 'certPem',
        reason: 'leads to no authority that is trusted here',
      })
    }
    return { ...toCertificateFields(certificate), caId: verdict.registered?.record.id ?? null }
  }
}

const WRONG_PASSWORD = { field: 'currentPassword', reason: 'is not the current password' } as const

/** The error for an owner of an authenticator whose current password is another one. */
export function wrongPasswordError(): ControllerError {
  return errors.UNAUTHORIZED(WRONG_PASSWORD)
}

/** The stored hash is not the one that the current password was compared with. */
export class PasswordChangedError extends ControllerError {
  constructor() {
    super('UNAUTHORIZED', WRONG_PASSWORD)
  }
}

/** Refuses what cannot come to anything, before anything is hashed. */
async function assertPossible(context: Context, next: Authenticator, password: string | null | undefined) {
  const row = await context.db
    .selectFrom('identities')
    .select('id')
    .where('id', '=', next.identityId)
    .executeTakeFirst()
  if (!row) throw invalidError('identityId', 'does not exist', next.identityId)
  await requireNoRouter(context, next.identityId)
  if (next.method === 'updb') {
    if (next.username === null) throw invalidError('username', 'is required for the method updb')
    if (!password) throw invalidError('password', 'is required for the method updb')
    if (next.certPem !== null) throw invalidError('certPem', 'belongs to the method cert')
  } else {
    if (next.certPem === null) throw invalidError('certPem', 'is required for the method cert')
    if (next.username !== null) throw invalidError('username', 'belongs to the method updb', next.username)
    if (password) throw invalidError('password', 'belongs to the method updb')
  }
  await assertMethodFree(context, next)
}

/** Administrators give an identity one authenticator of a method; enrolling can give it more certificates. */
async function assertMethodFree({ db }: Pick<ReadContext, 'db'>, { identityId, method }: Authenticator): Promise<void> {
  const { length } = await listAuthenticatorIds(db, identityId, method)
  if (length > 0) throw errors.MAX_AUTHENTICATOR_METHODS_REACHED({ field: 'method', reason: 'is taken', value: method })
}

async function assertCertificateFree(tx: WriteContext, { fingerprint256, fingerprint }: Authenticator): Promise<void> {
  const [other] = await findByCertificate(tx.db, fingerprint256 ?? '')
  if (other) throw errors.CERT_IN_USE({ message: 'an authenticator has it already', data: { fingerprint } })
}

function parseCertificatePem(pem: string): X509Certificate {
  const block = parseSinglePemBlock(pem.trim())
  const malformedError = (cause?: unknown) =>
    errors.COULD_NOT_PARSE_PEM_BLOCK({ field: 'certPem', reason: 'must be exactly one certificate' }, { cause })
  if (block?.label !== 'CERTIFICATE') throw malformedError()
  try {
    return new X509Certificate(block.bytes)
  } catch (error) {
    throw malformedError(error)
  }
}
