// Session certificates: issued for one API session, deleted with it, and not accepted for sign-in.
import { X509Certificate } from 'node:crypto'
import type { Entity } from '../../definitions/resources/define.ts'
import { sessionCertificates } from '../../definitions/resources/session-certificates.ts'
import { notFoundError } from '../../foundation/errors.ts'
import { newId } from '../../foundation/ids.ts'
import type { Authority } from '../../pki/authority.ts'
import { computeFingerprint, readNotAfter, readNotBefore } from '../../pki/certificates.ts'
import { formatName } from '../../pki/names.ts'
import type { SigningRequest } from '../../pki/requests.ts'
import { toSessionCertificateUri } from '../../pki/spiffe.ts'
import { type EntityStore, find, newEntity, toResourceNoun } from '../../storage/entities/entities.ts'
import type { Context, WriteContext } from '../../storage/transactions/context.ts'

const LIFETIME_MS = 12 * 60 * 60 * 1000

// A client needs one at a time, and a second one while it renews the first.
const MAX_PER_SESSION = 10

/** The API session that a certificate is for. */
interface Holder {
  readonly identityId: string
  readonly apiSessionId: string
}

interface IssuedSessionCertificate {
  readonly issued: Entity<typeof sessionCertificates>
  /** PEM of the controller's authorities. */
  readonly cas: string
}

/** Issues a certificate for an API session. Routers recognize the session by its SPIFFE id. */
export async function issueSessionCertificate(
  { entities, authority }: { readonly entities: EntityStore; readonly authority: Authority },
  context: Context,
  { identityId, apiSessionId }: Holder,
  request: SigningRequest,
  lifetimeMs = LIFETIME_MS,
): Promise<IssuedSessionCertificate> {
  const id = newId()
  const uri = toSessionCertificateUri(authority.trustDomain, { identityId, apiSessionId, certificateId: id })
  const encoded = authority.issueClient(request, context.clock.now(), {
    lifetimeMs,
    names: { uris: [uri] },
  })
  const parsed = new X509Certificate(encoded.raw)
  const values = {
    id,
    apiSessionId,
    subject: formatName(request.subject),
    fingerprint: computeFingerprint(encoded),
    validFrom: readNotBefore(parsed),
    validTo: readNotAfter(parsed),
    certificate: authority.clientChainPem(encoded),
  }
  const issued = await context.write(async (tx) => {
    await removeSurplus(tx, entities, apiSessionId)
    const entity = newEntity(tx, sessionCertificates, values)
    await entities.insert(tx, sessionCertificates, entity)
    return entity
  })
  return { issued, cas: authority.bundlePem }
}

/** Deletes the oldest certificates of an API session if there is no room for another. Connections outlive expired ones. */
async function removeSurplus(tx: WriteContext, entities: EntityStore, apiSessionId: string): Promise<void> {
  const rows = await tx.db
    .selectFrom('session_certificates')
    .select('id')
    .where('apiSessionId', '=', apiSessionId)
    .orderBy('n', 'desc')
    .execute()
  const ids = rows.slice(MAX_PER_SESSION - 1).map(({ id }) => id)
  await entities.removeAllIn(tx, sessionCertificates, ids)
}

/** Returns a certificate of an API session. @throws NOT_FOUND if it does not exist, or is for another API session */
export async function getSessionCertificate(
  context: Pick<Context, 'db'>,
  apiSessionId: string,
  id: string,
): Promise<Entity<typeof sessionCertificates>> {
  const certificate = await find(context, sessionCertificates, id)
  if (certificate?.apiSessionId !== apiSessionId) throw notFoundError(toResourceNoun(sessionCertificates), id)
  return certificate
}

/** Deletes a certificate of an API session. @throws NOT_FOUND if it does not exist, or is for another API session */
export async function deleteSessionCertificate(
  entities: EntityStore,
  context: Context,
  apiSessionId: string,
  id: string,
): Promise<void> {
  await context.write(async (tx) => {
    await getSessionCertificate(tx, apiSessionId, id)
    await entities.removeInTransaction(tx, sessionCertificates, id)
  })
}
