// Issues enrollments: the token that a client enrolls with, and the JWTs that carry it.
import { cas } from '../../definitions/resources/cas.ts'
import type { Entity } from '../../definitions/resources/define.ts'
import { enrollments } from '../../definitions/resources/enrollments.ts'
import type { Instant } from '../../foundation/clock.ts'
import { errors, invalidError } from '../../foundation/errors.ts'
import { newToken } from '../../foundation/ids.ts'
import type { Authority } from '../../pki/authority.ts'
import { getFirstControlAddress } from '../../settings/addresses.ts'
import type { Config } from '../../settings/settings.ts'
import { type EntityStore, find, get, newEntity } from '../../storage/entities/entities.ts'
import type { Context, ReadContext, WriteContext } from '../../storage/transactions/context.ts'
import { signAuthorityJwt, signEnrollmentJwt, signNetworkJwt } from './jwts.ts'

export type Enrollment = Entity<typeof enrollments>
/** The contents of an enrollment's JWT; the identity or router whose it is becomes its subject. */
type Signable = Pick<Enrollment, 'token' | 'method' | 'expiresAt'> &
  Partial<Pick<Enrollment, 'identityId' | 'edgeRouterId' | 'transitRouterId'>>

/** The expiry that a new record may ask for. */
export interface RequestedExpiry {
  /** Default: as the settings state. */
  readonly expiresAt?: Instant | null
}

/** The enrollment that a new identity may ask for. */
export interface RequestedEnrollment extends RequestedExpiry {
  readonly ott?: boolean
  readonly ottca?: string
  readonly updb?: string
}

/** An enrollment of an identity to be stored, with the members that its method needs. */
export type NewEnrollment = Pick<Enrollment, 'identityId' | 'method' | 'expiresAt'> &
  Partial<Pick<Enrollment, 'username' | 'caId' | 'isBootstrap'>>

interface IssuerParts {
  readonly entities: EntityStore
  readonly config: Config
  readonly authority: Authority
  /** The addresses of the controllers of a cluster, for clients that choose between them; none if clients are to know one alone. */
  listControlAddresses(): readonly string[]
}

export class EnrollmentIssuer {
  readonly #entities: EntityStore
  readonly #config: Config
  readonly #authority: Authority
  readonly #listControlAddresses: () => readonly string[]
  #networkJwt: Promise<string> | undefined

  constructor({ entities, config, authority, listControlAddresses }: IssuerParts) {
    this.#entities = entities
    this.#config = config
    this.#authority = authority
    this.#listControlAddresses = listControlAddresses
    // It names the certificate that the controller has no longer.
    authority.onChange(() => {
      this.#networkJwt = undefined
    })
  }

  /**
   * Stores the enrollments that a new identity asks for, all or none.
   * @throws COULD_NOT_VALIDATE for a time that has passed, NOT_FOUND if the certificate authority does not exist,
   * ENROLLMENT_EXISTS, USERNAME_TAKEN
   */
  async storeRequested(tx: WriteContext, identityId: string, wanted: RequestedEnrollment): Promise<void> {
    const expiresAt = chooseExpiry(tx, wanted, this.#config['enrollment.identity'])
    if (wanted.ott) await this.store(tx, { identityId, method: 'ott', expiresAt })
    if (wanted.ottca) {
      const authority = await find(tx, cas, wanted.ottca)
      if (!authority) throw errors.NOT_FOUND({ field: 'caId', reason: 'does not exist', value: wanted.ottca })
      await this.store(tx, { identityId, method: 'ottca', expiresAt, caId: wanted.ottca })
    }
    if (wanted.updb) await this.store(tx, { identityId, method: 'updb', expiresAt, username: wanted.updb })
  }

  /** Stores an enrollment with a token of its own. @throws ENROLLMENT_EXISTS, USERNAME_TAKEN */
  async store(tx: WriteContext, enrollment: NewEnrollment): Promise<Enrollment> {
    return (await this.#entities.insert(tx, enrollments, newEntity(tx, enrollments, enrollment))) as Enrollment
  }

  /**
   * Gives an enrollment a new token and a new end; from then on the old token, and the JWT that carries it, are worth
   * nothing. @throws COULD_NOT_VALIDATE for a time that has passed, NOT_FOUND
   */
  async refresh(context: Context, id: string, expiresAt: Instant): Promise<void> {
    if (expiresAt <= context.clock.now()) throw invalidError('expiresAt', 'must be in the future')
    await context.write(async (tx) => {
      await this.#entities.update(tx, enrollments, await get(tx, enrollments, id), { expiresAt, token: newToken() })
    })
  }

  /**
   * The JWT of an enrollment. It is signed when the record that shows it is rendered, not when the enrollment is made: so it names
   * the address and the certificate that the controller has now, and making identities by the thousand costs no signature.
   */
  signJwt({ token, method, expiresAt, ...whose }: Signable): Promise<string> {
    const parts = { config: this.#config, authority: this.#authority }
    const subject = whose.identityId ?? whose.edgeRouterId ?? whose.transitRouterId ?? ''
    const controlAddresses = this.#chooseControlAddresses(whose.identityId != null)
    return signEnrollmentJwt(parts, { method, subject, token, expiresAt, controlAddresses })
  }

  /** Two addresses force a router of release 1 into the data model, so that routers get the one name that leads to all controllers. */
  #chooseControlAddresses(isForIdentity: boolean): readonly string[] {
    const all = isForIdentity ? this.#listControlAddresses() : []
    return all.length > 0 ? all : [getFirstControlAddress(this.#config)]
  }

  /**
   * The JWT by which devices with a certificate of an authority come to trust this network, and enroll by themselves. It does
   * not depend on the record beyond its id. @throws NOT_FOUND
   */
  async signAuthorityJwt(context: ReadContext, id: string, audience: string): Promise<string> {
    await get(context, cas, id)
    return signAuthorityJwt({ config: this.#config, authority: this.#authority }, id, audience)
  }

  /** The JWT by which a client learns to trust this network before it has any token: the same for as long as it runs. */
  signNetworkJwt(audience: string): Promise<string> {
    this.#networkJwt ??= signNetworkJwt({ config: this.#config, authority: this.#authority }, audience)
    return this.#networkJwt
  }
}

/**
 * Until when the enrollment of a new record is valid.
 * @param lifetimeMs if the request does not say
 * @throws COULD_NOT_VALIDATE for a time that has passed
 */
export function chooseExpiry(
  { clock }: Pick<ReadContext, 'clock'>,
  { expiresAt }: RequestedExpiry,
  lifetimeMs: number,
): Instant {
  const now = clock.now()
  if (typeof expiresAt !== 'number') return now + lifetimeMs
  if (expiresAt <= now)
    throw invalidError('enrollment.expiresAt', 'must be in the future', new Date(expiresAt).toISOString())
  return expiresAt
}
