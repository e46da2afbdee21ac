// The secrets of MFA enrollments: made, encrypted, shown to their owner, and compared with the codes that the owner sends.
import type { Entity } from '../../definitions/resources/define.ts'
import { mfaEnrollments } from '../../definitions/resources/mfa-enrollments.ts'
import { newId } from '../../foundation/ids.ts'
import { getAdvertisedAddress } from '../../settings/addresses.ts'
import { splitAddress } from '../../settings/setting-types.ts'
import type { Config } from '../../settings/settings.ts'
import { newEntity } from '../../storage/entities/entities.ts'
import type { SecretCipher } from '../../storage/secrets/secret-cipher.ts'
import type { Context } from '../../storage/transactions/context.ts'
import { generateRecoveryCodes, removeRecoveryCode } from './recovery-codes.ts'
import { buildProvisioningUrl, findStep, generateTotpSecret } from './totp-codes.ts'

export type MfaEnrollment = Entity<typeof mfaEnrollments>

/** The identity that acts on its own second factor, and its session. */
export interface MfaOwner {
  readonly identityId: string
  readonly apiSessionId: string
}

/** An enrollment as far as its secrets are concerned. */
export type EncryptedMfa = Pick<MfaEnrollment, 'id' | 'encryptedSecret' | 'encryptedRecoveryCodes'>

/** The codes that an operation accepts: those of the app only, or recovery codes too. */
export type AcceptedCodes = 'totp' | 'totp-or-recovery'

/** The reason for which a code is refused, in the audit. */
export type WrongCodeReason = 'WRONG_CODE' | 'REUSED_CODE'

/** A code is not accepted. */
export class WrongCodeError extends Error {
  override readonly name = 'WrongCodeError'
  readonly reason: WrongCodeReason
  readonly enrollmentId: string

  constructor(reason: WrongCodeReason, enrollmentId: string) {
    super(reason === 'WRONG_CODE' ? 'the code is wrong' : 'the code was used before')
    this.reason = reason
    this.enrollmentId = enrollmentId
  }
}

export class MfaSecrets {
  readonly #cipher: SecretCipher
  readonly #windowSteps: number
  readonly #issuer: string

  constructor(cipher: SecretCipher, config: Config) {
    this.#cipher = cipher
    this.#windowSteps = config['totp.window']
    this.#issuer = config['totp.issuer'] || toIssuer(splitAddress(getAdvertisedAddress(config)).host)
  }

  /** Returns an unverified enrollment of a session, with a new secret and new recovery codes. */
  createEnrollment(context: Pick<Context, 'clock'>, { identityId, apiSessionId }: MfaOwner): MfaEnrollment {
    const id = newId()
    return newEntity(context, mfaEnrollments, {
      id,
      identityId,
      apiSessionId,
      isVerified: false,
      encryptedSecret: this.#cipher.encrypt(generateTotpSecret(), toPlace(id, 'encryptedSecret')),
      encryptedRecoveryCodes: this.encryptRecoveryCodes(id, generateRecoveryCodes()),
      lastUsedStep: 0,
    })
  }

  encryptRecoveryCodes(id: string, codes: readonly string[]): string {
    return this.#cipher.encrypt(JSON.stringify(codes), toPlace(id, 'encryptedRecoveryCodes'))
  }

  decryptRecoveryCodes({ id, encryptedRecoveryCodes }: EncryptedMfa): string[] {
    return JSON.parse(this.#cipher.decrypt(encryptedRecoveryCodes, toPlace(id, 'encryptedRecoveryCodes'))) as string[]
  }

  /** Returns the URL from which an authenticator app learns the secret. */
  getProvisioningUrl(enrollment: EncryptedMfa, identityName: string): string {
    return buildProvisioningUrl(this.#issuer, identityName, this.#decryptSecret(enrollment))
  }

  /**
   * Returns what an accepted code changes of the enrollment, so that it is not accepted again. Runs inside the transaction
   * that stores the change.
   * @throws WrongCodeError
   */
  useCode(
    { clock }: Pick<Context, 'clock'>,
    enrollment: MfaEnrollment,
    code: string,
    accepted: AcceptedCodes,
  ): Partial<Pick<MfaEnrollment, 'lastUsedStep' | 'encryptedRecoveryCodes'>> {
    const { id, lastUsedStep } = enrollment
    const step = findStep(this.#decryptSecret(enrollment), code, clock.now(), this.#windowSteps)
    if (step !== undefined) {
      // RFC 6238 §5.2: a code is good once. Codes of earlier steps are refused too, because they may have been observed.
      if (step <= lastUsedStep) throw new WrongCodeError('REUSED_CODE', id)
      return { lastUsedStep: step }
    }
    const remaining =
      accepted === 'totp-or-recovery' ? removeRecoveryCode(this.decryptRecoveryCodes(enrollment), code) : undefined
    if (!remaining) throw new WrongCodeError('WRONG_CODE', id)
    return { encryptedRecoveryCodes: this.encryptRecoveryCodes(id, remaining) }
  }

  #decryptSecret({ id, encryptedSecret }: EncryptedMfa): string {
    return this.#cipher.decrypt(encryptedSecret, toPlace(id, 'encryptedSecret'))
  }
}

function toPlace(id: string, field: 'encryptedSecret' | 'encryptedRecoveryCodes') {
  return { resource: mfaEnrollments.plural, id, field }
}

/** A colon ends the issuer in the label of an app, and an IPv6 address has some. */
function toIssuer(host: string): string {
  return host.replaceAll(':', '.')
}
