// A caller's own second factor: enrolled by an authenticator app, passed by its codes, and removed.
import type { MfaView } from '../../../src/authentication/mfa/mfa-enrollment-behavior.ts'
import { requireMfa } from '../../../src/authentication/mfa/mfa-records.ts'
import type { MfaOwner } from '../../../src/authentication/mfa/mfa-secrets.ts'
import { startMfa, verifyMfa } from '../../../src/authentication/mfa/mfa-setup.ts'
import {
  passMfa,
  removeOwnMfa,
  replaceRecoveryCodes,
  unlockRecoveryCodes,
} from '../../../src/authentication/mfa/own-mfa.ts'
import { issueTotpToken } from '../../../src/authentication/openid-connect/totp-token.ts'
import { identities } from '../../../src/definitions/resources/identities.ts'
import { mfaEnrollments } from '../../../src/definitions/resources/mfa-enrollments.ts'
import { f } from '../../../src/definitions/schema/fields.ts'
import { requiredObject, text } from '../../../src/definitions/schema/json-schema.ts'
import { get } from '../../../src/storage/entities/entities.ts'
import { JSON_FORMS } from '../../api/dialects.ts'
import { type AnyOperation, type BodyReader, type Call, defineOperation, readFieldsBody } from '../../api/operation.ts'
import { dataResponse, emptyResponse, rawResponse } from '../../api/responses.ts'
import { renderRecord } from '../../responses/record-responses.ts'
import { requireApiSessionId } from './current-api-session.ts'
import { requireIdentityId } from './current-identity.ts'

const COMMON = { apis: ['client', 'management'] as const, topic: 'current-identity' }
const MFA = '/current-identity/mfa'
const RECOVERY_CODES = `${MFA}/recovery-codes`

/** A session that owes the factor can enroll one. It can neither remove one, nor see or replace recovery codes. */
const PARTIAL = { permission: 'mfa-enrollment.create', grantedTo: 'partial' } as const
const FULL = { permission: 'mfa-enrollment.update', grantedTo: 'authenticated' } as const

/** The header that carries a code if the request has no body. */
const CODE_HEADER = 'mfa-validation-code'
const codeHeader = {
  [CODE_HEADER]: { schema: { type: 'string', description: 'A code of the second factor.' } },
} as const

interface CodeBody {
  readonly code: string
}
const codeField = f.text({ required: 'always', secret: true, summary: 'A code of the authenticator app.' })
const codeBody = readFieldsBody<CodeBody>({ code: codeField })
/** The body of a request that may have its code in the header instead. */
const optionalCodeBody: BodyReader<CodeBody | undefined> = {
  ...codeBody,
  isRequired: false,
  read: (sent, tolerance) => (sent === undefined ? undefined : codeBody.read(sent, tolerance)),
}

function getOwner({ context }: Pick<Call, 'context'>): MfaOwner {
  return { identityId: requireIdentityId(context), apiSessionId: requireApiSessionId(context) }
}

function readCodeHeader({ headers }: Pick<Call, 'headers'>): string {
  return String(headers[CODE_HEADER] ?? '')
}

const LINKS = {
  self: { href: './current-identity/mfa' },
  'current-identity': { href: './current-identity' },
} as const
const UNVERIFIED_LINKS = {
  ...LINKS,
  verify: { href: './current-identity/mfa/verify' },
  qr: { href: './current-identity/mfa/qr-code' },
} as const
const VERIFIED_LINKS = { ...LINKS, 'recovery-codes': { href: './current-identity/mfa/recovery-codes' } } as const

async function respondWithMfa({ controller, context, dialect }: Call, id: string, view: MfaView, links: object) {
  const only = view === 'recovery-codes' ? { only: ['recoveryCodes'] } : {}
  const presentation = { view, links: () => JSON.stringify(links), form: JSON_FORMS[dialect], ...only }
  return dataResponse(await renderRecord(controller, context, mfaEnrollments, id, presentation))
}

export const mfaOperations: readonly AnyOperation[] = [
  defineOperation<CodeBody>({
    ...COMMON,
    id: 'authenticateMfa',
    topic: 'authentication',
    method: 'POST',
    path: '/authenticate/mfa',
    summary: "Passes the second factor of the caller's session, by a code of the app or a recovery code.",
    access: { permission: 'current-api-session.update', grantedTo: 'partial' },
    body: codeBody,
    returns: { kind: 'empty' },
    async run(call) {
      await passMfa(call.controller, call.context, getOwner(call), call.body.code)
      return emptyResponse()
    },
  }),
  defineOperation<CodeBody>({
    ...COMMON,
    id: 'createTotpToken',
    topic: 'current-api-session',
    method: 'POST',
    path: '/current-api-session/totp-token',
    summary: 'Issues a token that shows routers that the session has just passed its second factor.',
    isOwn: true,
    access: { permission: 'current-api-session.update', grantedTo: 'authenticated' },
    body: codeBody,
    returns: { kind: 'data', schema: requiredObject({ token: text, issuedAt: text }) },
    errorStatuses: [400, 409],
    run: async (call) =>
      dataResponse(await issueTotpToken(call.controller, call.context, getOwner(call), call.body.code)),
  }),
  defineOperation({
    ...COMMON,
    id: 'detailMfa',
    method: 'GET',
    path: MFA,
    summary: "Shows the caller's MFA enrollment; until it is verified, also what is needed to verify it.",
    access: PARTIAL,
    returns: { kind: 'record', resource: mfaEnrollments.plural },
    errorStatuses: [404],
    async run(call) {
      const { id, isVerified } = await requireMfa(call.context, getOwner(call))
      return respondWithMfa(call, id, 'setup', isVerified ? VERIFIED_LINKS : UNVERIFIED_LINKS)
    },
  }),
  defineOperation({
    ...COMMON,
    id: 'enrollMfa',
    method: 'POST',
    path: MFA,
    summary: 'Starts an MFA enrollment of the caller, which a code of the app then verifies.',
    isOwnChange: true,
    access: PARTIAL,
    returns: { kind: 'created', resource: mfaEnrollments.plural },
    errorStatuses: [409],
    async run(call) {
      const id = await startMfa(call.controller, call.context, getOwner(call))
      return dataResponse({ _links: { self: LINKS.self }, id }, { status: 201 })
    },
  }),
  defineOperation({
    ...COMMON,
    id: 'deleteMfa',
    method: 'DELETE',
    path: MFA,
    summary: "Removes the caller's MFA enrollment; one that is verified requires a code.",
    isOwnChange: true,
    access: FULL,
    headers: codeHeader,
    returns: { kind: 'empty' },
    errorStatuses: [404],
    async run(call) {
      await removeOwnMfa(call.controller, call.context, getOwner(call), readCodeHeader(call))
      return emptyResponse()
    },
  }),
  defineOperation<CodeBody>({
    ...COMMON,
    id: 'verifyMfa',
    method: 'POST',
    path: `${MFA}/verify`,
    summary: "Verifies the caller's MFA enrollment by a first code of the app.",
    isOwnChange: true,
    access: PARTIAL,
    body: codeBody,
    returns: { kind: 'empty' },
    errorStatuses: [404],
    async run(call) {
      await verifyMfa(call.controller, call.context, getOwner(call), call.body.code)
      return emptyResponse()
    },
  }),
  defineOperation({
    ...COMMON,
    id: 'detailMfaQrCode',
    method: 'GET',
    path: `${MFA}/qr-code`,
    summary: "Draws the QR code of the caller's MFA enrollment, until it is verified.",
    access: PARTIAL,
    returns: { kind: 'raw', contentType: 'image/png' },
    hasOneForm: true,
    errorStatuses: [404],
    async run(call) {
      const { controller, context } = call
      const enrollment = await requireMfa(context, getOwner(call), 'unverified')
      const { name } = await get(context, identities, enrollment.identityId)
      const { drawQrCode } = await import('../../responses/qr-code.ts')
      return rawResponse(
        'image/png',
        await drawQrCode(controller.auth.mfaSecrets.getProvisioningUrl(enrollment, name)),
        {
          'cache-control': 'no-store',
        },
      )
    },
  }),
  defineOperation<CodeBody | undefined>({
    ...COMMON,
    id: 'detailMfaRecoveryCodes',
    method: 'GET',
    path: RECOVERY_CODES,
    summary: "Shows the caller's recovery codes that are not used yet; the code is in the body or the header.",
    access: FULL,
    headers: codeHeader,
    body: optionalCodeBody,
    returns: { kind: 'record', resource: mfaEnrollments.plural, only: ['recoveryCodes'] },
    errorStatuses: [400, 404],
    async run(call) {
      const code = call.body?.code || readCodeHeader(call)
      const id = await unlockRecoveryCodes(call.controller, call.context, getOwner(call), code)
      return respondWithMfa(call, id, 'recovery-codes', VERIFIED_LINKS)
    },
  }),
  defineOperation<CodeBody>({
    ...COMMON,
    id: 'createMfaRecoveryCodes',
    method: 'POST',
    path: RECOVERY_CODES,
    summary: 'Replaces all recovery codes of the caller.',
    isOwnChange: true,
    access: FULL,
    body: codeBody,
    returns: { kind: 'empty' },
    errorStatuses: [404],
    async run(call) {
      await replaceRecoveryCodes(call.controller, call.context, getOwner(call), call.body.code)
      return emptyResponse()
    },
  }),
  defineOperation<CodeBody>({
    ...COMMON,
    id: 'renewMfaRecoveryCodes',
    method: 'POST',
    path: '/controller/mfa/recovery-codes',
    summary:
      'Replaces all recovery codes of the caller, and shows the new ones: reading them apart takes a second code.',
    isOwn: true,
    isOwnChange: true,
    access: FULL,
    body: codeBody,
    returns: { kind: 'record', resource: mfaEnrollments.plural, only: ['recoveryCodes'] },
    errorStatuses: [404],
    async run(call) {
      const id = await replaceRecoveryCodes(call.controller, call.context, getOwner(call), call.body.code)
      return respondWithMfa(call, id, 'recovery-codes', VERIFIED_LINKS)
    },
  }),
]
