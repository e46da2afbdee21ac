// Completing an enrollment: the token is consumed, and what the client brought becomes its credential.

import { foldUsername } from '../auth/password-method.ts'
import type { Context, WriteContext } from '../context.ts'
import { errors, invalid } from '../errors.ts'
import { certificatePem, fingerprint, fingerprint256, publicKeyPrint } from '../pki/certificates.ts'
import { readSigningRequest } from '../pki/requests.ts'
import { authenticators } from '../resources/authenticators.ts'
import { enrollments } from '../resources/enrollments.ts'
import { insert, newEntity, removeIn } from '../store/entities.ts'
import type { EnrollmentMethod } from './enrollments.ts'

/** What a client brings: which of it counts depends on the method. */
export interface EnrollmentRequest {
  /** The method the client names; it must be that of the token. */
  readonly method: string
  readonly token: string | undefined
  readonly csr?: string
  readonly username?: string
  readonly password?: string
}

/** What the client gets: the members of the answer's `data`. */
export type EnrollmentResult = Readonly<Record<string, string>>

type Row = { id: string; identityId: string; method: EnrollmentMethod; expiresAt: number; username: string | null }

const methods: Readonly<
  Record<string, (context: Context, row: Row, request: EnrollmentRequest) => Promise<EnrollmentResult>>
> = {
  ott: enrollByCertificate,
  updb: enrollByPassword,
}

/** @throws INVALID_ENROLL_METHOD, INVALID_ENROLLMENT_TOKEN, ENROLLMENT_EXPIRED, and by method */
export async function enroll(context: Context, request: EnrollmentRequest): Promise<EnrollmentResult> {
  const complete = Object.hasOwn(methods, request.method) ? methods[request.method] : undefined
  if (!complete) throw errors.INVALID_ENROLL_METHOD()
  const row = request.token === undefined ? undefined : await findByToken(context, request.token)
  if (!row) throw errors.INVALID_ENROLLMENT_TOKEN()
  if (row.method !== request.method) throw errors.INVALID_ENROLL_METHOD()
  if (row.expiresAt <= context.clock.now()) throw errors.ENROLLMENT_EXPIRED()
  return complete(context, row, request)
}

function findByToken(context: Pick<Context, 'db'>, token: string): Promise<Row | undefined> {
  return context.db
    .selectFrom('enrollments')
    .select(['id', 'identityId', 'method', 'expiresAt', 'username'])
    .where('token', '=', token)
    .executeTakeFirst()
}

/** `ott`: a signing request becomes a client certificate. */
async function enrollByCertificate(context: Context, row: Row, { csr }: EnrollmentRequest): Promise<EnrollmentResult> {
  const { authority } = context.controller
  const certificate = authority.issueClient(readSigningRequest(csr ?? ''), context.clock.now())
  const chain = authority.clientChainPem(certificate)
  await context.write(async (tx) => {
    await consume(tx, row)
    await insert(
      tx,
      authenticators,
      newEntity(tx, authenticators, {
        identityId: row.identityId,
        method: 'cert',
        certPem: certificatePem(certificate),
        fingerprint: fingerprint(certificate),
        fingerprint256: fingerprint256(certificate),
        publicKeyPrint: publicKeyPrint(certificate),
        isIssuedByNetwork: true,
        extendLog: null,
      }),
    )
  })
  return { cert: chain }
}

/** `updb`: a password for the username of the enrollment; one without username takes the client's. */
async function enrollByPassword(context: Context, row: Row, request: EnrollmentRequest): Promise<EnrollmentResult> {
  const username = row.username ?? request.username
  if (!username) throw invalid('username', 'is required')
  if (!request.password) throw invalid('password', 'is required')
  const passwordHash = await context.controller.passwords.hash(request.password)
  await context.write(async (tx) => {
    await consume(tx, row)
    await insert(
      tx,
      authenticators,
      newEntity(tx, authenticators, {
        identityId: row.identityId,
        method: 'updb',
        username,
        foldedUsername: foldUsername(username),
        passwordHash,
      }),
    )
  })
  return { username }
}

/** Takes the enrollment away; of two clients with the same token only the first one gets here. */
async function consume(tx: WriteContext, row: Row): Promise<void> {
  const isThere = await tx.db.selectFrom('enrollments').select('id').where('id', '=', row.id).executeTakeFirst()
  if (!isThere) throw errors.INVALID_ENROLLMENT_TOKEN()
  await removeIn(tx, enrollments, row.id)
}
