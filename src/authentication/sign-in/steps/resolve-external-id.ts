// Certificate: finds the identity by the external id in the certificate, if its authority has a claim that names its place.

import { readExternalId } from '../../authorities/external-id-claim.ts'
import { findByExternalId } from '../../credentials/credentials.ts'
import { AuthenticationError, EXTERNAL_ID_AUTHENTICATOR, NO_CERTIFICATE } from '../authentication-methods.ts'
import type { Step } from '../sign-in-attempt.ts'

/** The external id decides even if an authenticator holds the certificate. Without one, that authenticator does. */
export const resolveExternalId: Step = async (attempt) => {
  const { claim, context } = attempt
  const externalId = claim && readExternalId(claim, attempt.certificate)
  if (!externalId) return
  const [identity] = await findByExternalId(context.db, externalId)
  if (!identity)
    throw new AuthenticationError('UNKNOWN_CREDENTIAL', 'no identity has the external id of the certificate')
  attempt.externalId = externalId
  attempt.authenticator = {
    ...NO_CERTIFICATE,
    id: EXTERNAL_ID_AUTHENTICATOR,
    identityId: identity.id,
    passwordHash: null,
  }
}
