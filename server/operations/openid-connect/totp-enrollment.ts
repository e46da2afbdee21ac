// The enrollment of a second factor during a sign-in by OpenID Connect, whose identity must have one and has none yet.
//
// It belongs to the session of the sign-in, so that another client, which may know the password too, sees nothing of it.

import { secondFactorRequiredError } from '../../../src/authentication/api-sessions/caller-errors.ts'
import { requireMfa } from '../../../src/authentication/mfa/mfa-records.ts'
import type { MfaOwner } from '../../../src/authentication/mfa/mfa-secrets.ts'
import { startMfa, verifyMfa } from '../../../src/authentication/mfa/mfa-setup.ts'
import { removeOwnMfa } from '../../../src/authentication/mfa/own-mfa.ts'
import type { PendingAuthorization } from '../../../src/authentication/openid-connect/authorization-requests.ts'
import {
  createSessionContext,
  findSession,
  toOwner,
} from '../../../src/authentication/openid-connect/request-sign-in.ts'
import { toIsoTime } from '../../../src/foundation/clock.ts'
import { errors } from '../../../src/foundation/errors.ts'
import type { Context } from '../../../src/storage/transactions/context.ts'
import { type AnyOperation, type Call, defineOperation } from '../../api/operation.ts'
import { NO_STORE } from './forms.ts'
import { LOGIN, requireRequest, respondToStep } from './login.ts'
import { type CodeBody, codeBody } from './login-bodies.ts'

/** The session of a sign-in whose credential is proven. */
interface SignedIn {
  readonly request: PendingAuthorization
  readonly owner: MfaOwner
  readonly context: Context
  readonly identityName: string
}

/**
 * The changes count as those that a session makes by itself.
 * @throws UNAUTHORIZED if there is no such sign-in, or its credential is not proven yet; SERVER_TOO_MANY_REQUESTS
 */
async function requireSignedIn(call: Call<CodeBody>): Promise<SignedIn> {
  const { context, controller } = call
  const request = await requireRequest(call, true)
  const session = findSession(controller, request)
  if (!session) throw errors.UNAUTHORIZED({ message: 'the sign-in has to begin with a credential' })
  const ownContext = createSessionContext(controller, context, request, session)
  const { caller, clock, origin } = ownContext
  if (caller.kind === 'identity')
    controller.auth.writeLimits.requireRate(caller, { address: origin.address ?? '', isOwnChange: true }, clock.now())
  return { request, owner: toOwner(session), context: ownContext, identityName: session.identity.name }
}

const ENROLL = { ...LOGIN, atRoot: ['/oidc/login/totp/enroll'], body: codeBody } as const

export const totpEnrollmentOperations: readonly AnyOperation[] = [
  defineOperation<CodeBody>({
    ...ENROLL,
    id: 'enrollTotp',
    method: 'POST',
    summary: 'Starts the enrollment of a second factor, and shows its secret and its recovery codes.',
    async run(call) {
      const { controller } = call
      const { context, identityName, owner } = await requireSignedIn(call)
      const id = await startMfa(controller, context, owner)
      const enrollment = await requireMfa(context, owner, 'unverified')
      const { mfaSecrets } = controller.auth
      const record = {
        id,
        createdAt: toIsoTime(enrollment.createdAt),
        updatedAt: toIsoTime(enrollment.updatedAt),
        isVerified: false,
        provisioningUrl: mfaSecrets.getProvisioningUrl(enrollment, identityName),
        recoveryCodes: mfaSecrets.decryptRecoveryCodes(enrollment),
        _links: null,
      }
      return { status: 201, contentType: 'application/json', body: JSON.stringify(record), headers: NO_STORE }
    },
  }),
  defineOperation<CodeBody>({
    ...ENROLL,
    id: 'dropTotpEnrollment',
    method: 'DELETE',
    summary:
      'Drops the enrollment of a second factor; one that is verified requires a code, after the sign-in passed it.',
    async run(call) {
      const { context, owner } = await requireSignedIn(call)
      const { isVerified } = await requireMfa(context, owner)
      // As for every session: otherwise a password with one code would be enough to replace the factor of its owner.
      const isPartial = context.caller.kind !== 'identity' || context.caller.isPartial
      if (isVerified && isPartial) throw secondFactorRequiredError()
      await removeOwnMfa(call.controller, context, owner, call.body.code ?? '')
      return { status: 200, contentType: 'application/json', body: '{}', headers: NO_STORE }
    },
  }),
  defineOperation<CodeBody>({
    ...ENROLL,
    id: 'verifyTotpEnrollment',
    atRoot: ['/oidc/login/totp/enroll/verify'],
    method: 'POST',
    summary:
      'Verifies the enrollment of a second factor by a first code of the app, which the sign-in has passed then.',
    async run(call) {
      const { context, owner, request } = await requireSignedIn(call)
      await verifyMfa(call.controller, context, owner, call.body.code ?? '')
      return respondToStep(call, request)
    },
  }),
]
