// The stored credentials as sign-ins look them up: statements that run again and again, built once.
import { prepareTypedQuery } from '../store/prepared-queries.ts'

/** The credential of a username, in the form in which usernames are compared. */
export const findByUsername = prepareTypedQuery((db, foldedUsername: string) =>
  db
    .selectFrom('authenticators')
    .select(['id', 'identityId', 'passwordHash'])
    .where('foldedUsername', '=', foldedUsername),
)

/** The credential of a certificate, by the SHA-256 of its DER. */
export const findByCertificate = prepareTypedQuery((db, fingerprint256: string) =>
  db
    .selectFrom('authenticators')
    .select(['id', 'identityId', 'isIssuedByNetwork', 'isExtendRequested', 'lastAuthResolvedToRoot'])
    .where('fingerprint256', '=', fingerprint256),
)

/** What a credential is proven by; of a certificate, null. */
export const readPasswordHash = prepareTypedQuery((db, id: string) =>
  db.selectFrom('authenticators').select('passwordHash').where('id', '=', id),
)
