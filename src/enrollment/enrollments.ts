// One-time ways in: making the token and the JWT that a client enrolls with.
import type { Instant } from '../clock.ts'
import type { Context, WriteContext } from '../context.ts'
import { errors } from '../errors.ts'
import { newId, newToken } from '../ids.ts'
import type { Entity } from '../resources/define.ts'
import { enrollments } from '../resources/enrollments.ts'
import { insert, newEntity } from '../store/entities.ts'
import { enrollmentJwt } from './enrollment-jwt.ts'

export type Enrollment = Entity<typeof enrollments>
export type EnrollmentMethod = Enrollment['method']

/** An enrollment whose token and JWT are made, to be stored together with what it is for. */
export interface PreparedEnrollment {
  readonly id: string
  readonly method: EnrollmentMethod
  readonly token: string
  readonly jwt: string
  readonly expiresAt: Instant
  readonly username: string | null
}

export class Enrollments {
  readonly #lifetime: number

  /** `lifetime`: how long an enrollment is good for that names no end itself, in milliseconds. */
  constructor(lifetime: number) {
    this.#lifetime = lifetime
  }

  /** The enrollment that a new identity asks for; of several, the first in the order ott, ottca, updb. */
  async prepareWanted(
    context: Context,
    identity: { readonly id: string },
    wanted: { readonly ott?: boolean; readonly ottca?: string; readonly updb?: string },
  ): Promise<PreparedEnrollment | undefined> {
    const expiresAt = context.clock.now() + this.#lifetime
    if (wanted.ott) return this.prepare(context, identity.id, { method: 'ott', expiresAt })
    if (wanted.ottca) throw errors.NOT_FOUND({ field: 'caId', reason: 'does not exist', value: wanted.ottca })
    if (wanted.updb) return this.prepare(context, identity.id, { method: 'updb', expiresAt, username: wanted.updb })
    return undefined
  }

  /** Signs the JWT of an enrollment; happens before the transaction that stores it. */
  async prepare(
    context: Context,
    identityId: string,
    { method, expiresAt, username = null }: { method: EnrollmentMethod; expiresAt: Instant; username?: string | null },
  ): Promise<PreparedEnrollment> {
    const token = newToken()
    const jwt = await enrollmentJwt(context.controller, { method, subject: identityId, token, expiresAt })
    return { id: newId(), method, token, jwt, expiresAt, username }
  }

  async store(tx: WriteContext, identityId: string, prepared: PreparedEnrollment): Promise<Enrollment> {
    return (await insert(tx, enrollments, newEntity(tx, enrollments, { identityId, ...prepared }))) as Enrollment
  }
}
