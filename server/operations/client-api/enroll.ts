// Enrollment on the client API: one-time tokens are exchanged for credentials, and clients verify the controller first.
import { type EnrollmentRequest, enroll } from '../../../src/authentication/enrollment/enroll.ts'
import { extendRouterCertificates } from '../../../src/authentication/enrollment/enroll-router.ts'
import { MAX_CHOSEN_LENGTH } from '../../../src/authentication/enrollment/identity-names.ts'
import { answerChallenge, toKeySet } from '../../../src/authentication/enrollment/key-set.ts'
import { newUsername, passwordLength } from '../../../src/definitions/resources/authenticators.ts'
import { f } from '../../../src/definitions/schema/fields.ts'
import { type JsonSchema, listOf, objectOf, requiredObject } from '../../../src/definitions/schema/json-schema.ts'
import { errors } from '../../../src/foundation/errors.ts'
import {
  type AnyOperation,
  type BodyReader,
  type Call,
  defineOperation,
  type QueryParameter,
  readFieldsBody,
} from '../../api/operation.ts'
import { dataResponse, type Response, rawResponse } from '../../api/responses.ts'
import { assertAcceptsJson } from '../../requests/hooks/negotiate.ts'

const COMMON = { apis: ['client'] as const, topic: 'enrollment' }
const PUBLIC = { public: 'the token, or the certificate, is what lets a caller in' } as const
const BEFORE_TRUST = { public: 'a client asks it before it trusts this controller' } as const
const REQUEST_TYPES = ['application/x-pem-file', 'application/pkcs7', 'text/plain'] as const

const string: JsonSchema = { type: 'string' }
const certificates = { cert: string, ca: string, serverCert: string }
const ENROLLED = { kind: 'data', schema: objectOf(certificates) } as const
const token: QueryParameter = { schema: { ...string, format: 'uuid', description: 'The token of the enrollment.' } }

/** The method determines which members are used. */
interface EnrollBody {
  readonly clientCsr?: string
  readonly username?: string
  readonly password?: string
  readonly name?: string
  readonly token?: string
  readonly certCsr?: string
  readonly serverCertCsr?: string
}

const tokenField = f.text({ required: true, format: 'uuid', summary: 'The token of the enrollment.' })
const clientCsr = f.text({ summary: 'A PEM certificate signing request.' })
const username = f.text(newUsername)
const certCsr = f.text({ summary: 'A PEM certificate signing request of a router, as a client.' })
const serverCertCsr = f.text({ summary: 'A PEM certificate signing request of a router, as a server.' })
const secret = { ...passwordLength, secret: true } as const
// The client chooses it, and no administrator reads it before it becomes the name of an identity.
const name = f.text({
  maxLength: MAX_CHOSEN_LENGTH,
  summary: 'The name that an identity which enrolls by itself asks for.',
})
const jsonBody = readFieldsBody<EnrollBody>(
  { clientCsr, certCsr, serverCertCsr, username, password: f.text(secret), name },
  { isRequired: false },
)

/** JSON, or a signing request in PEM. */
const enrollBody: BodyReader<EnrollBody> = {
  schema: jsonBody.schema,
  isRequired: false,
  contentTypes: [...jsonBody.contentTypes, ...REQUEST_TYPES],
  read: (sent, tolerance) => (typeof sent === 'string' ? { clientCsr: sent } : jsonBody.read(sent, tolerance)),
}

function request(
  { peer }: Pick<Call, 'peer'>,
  method: string | undefined,
  token: string | undefined,
  { clientCsr, username, password, name, certCsr, serverCertCsr }: EnrollBody,
): EnrollmentRequest {
  return {
    routerRequests: { certCsr, serverCertCsr },
    method,
    token,
    peer,
    ...(name === undefined ? {} : { name }),
    ...(clientCsr === undefined ? {} : { csr: clientCsr }),
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
  }
}

async function completeEnrollment({ controller, context }: Call, request: EnrollmentRequest): Promise<Response> {
  return dataResponse(await enroll(controller, context, request))
}

/** The paths of single methods; clients use the generic path. */
const byMethod: readonly AnyOperation[] = [
  defineOperation<EnrollBody>({
    ...COMMON,
    id: 'enrollOtt',
    method: 'POST',
    path: '/enroll/ott',
    summary: 'Exchanges a one-time token and a signing request for a client certificate.',
    access: PUBLIC,
    body: readFieldsBody<EnrollBody>({ clientCsr, token: tokenField }),
    returns: ENROLLED,
    errorStatuses: [409],
    run: async (call) => completeEnrollment(call, request(call, 'ott', call.body.token, call.body)),
  }),
  defineOperation<EnrollBody>({
    ...COMMON,
    id: 'enrollOttCa',
    method: 'POST',
    path: '/enroll/ottca',
    summary: "Exchanges a one-time token for an authenticator with a certificate of an operator's authority.",
    access: PUBLIC,
    body: readFieldsBody<EnrollBody>({
      clientCsr: f.text({ summary: 'Ignored: the certificate is that of the TLS connection.' }),
      token: tokenField,
    }),
    returns: ENROLLED,
    errorStatuses: [409],
    run: async (call) => completeEnrollment(call, request(call, 'ottca', call.body.token, {})),
  }),
  defineOperation({
    ...COMMON,
    id: 'enrollCa',
    method: 'POST',
    path: '/enroll/ca',
    summary: "Creates an identity for a certificate of an operator's authority.",
    access: PUBLIC,
    returns: ENROLLED,
    errorStatuses: [400, 409],
    run: async (call) => completeEnrollment(call, request(call, 'ca', undefined, {})),
  }),
  defineOperation<EnrollBody>({
    ...COMMON,
    id: 'enrollUpdb',
    method: 'POST',
    path: '/enroll/updb',
    summary: 'Exchanges a one-time token for a username with a password.',
    access: PUBLIC,
    query: { token: { ...token, isRequired: true } },
    body: readFieldsBody<EnrollBody>({ username, password: f.text({ ...secret, required: true }) }),
    returns: { kind: 'data', schema: requiredObject({ username: string }) },
    errorStatuses: [409],
    run: async (call) => completeEnrollment(call, request(call, 'updb', call.query.token as string, call.body)),
  }),
]

/** The paths of edge routers; routers themselves use the generic path. */
const ofRouters: readonly AnyOperation[] = [
  defineOperation<{ readonly clientCsr?: string; readonly serverCsr?: string; readonly token?: string }>({
    ...COMMON,
    id: 'enrollErOtt',
    method: 'POST',
    path: '/enroll/erott',
    summary: 'Exchanges a one-time token and two signing requests for the certificates of an edge router.',
    access: PUBLIC,
    body: readFieldsBody({
      clientCsr,
      serverCsr: serverCertCsr,
      token: f.text({ summary: 'The token of the enrollment.' }),
    }),
    returns: ENROLLED,
    run: async (call) => {
      const { clientCsr: certCsr = '', serverCsr: serverCertCsr = '', token } = call.body
      return completeEnrollment(call, request(call, 'erott', token, { certCsr, serverCertCsr }))
    },
  }),
  defineOperation<{ readonly certCsr: string; readonly serverCertCsr: string }>({
    ...COMMON,
    id: 'extendRouterEnrollment',
    method: 'POST',
    path: '/enroll/extend/router',
    summary: 'Replaces the certificates of the router that presents its client certificate.',
    access: { public: "the router's certificate is what lets it in" },
    body: readFieldsBody({
      certCsr: f.text({ required: true, summary: 'A PEM certificate signing request, as a client.' }),
      serverCertCsr: f.text({ required: true, summary: 'A PEM certificate signing request, as a server.' }),
    }),
    returns: ENROLLED,
    errorStatuses: [401],
    run: async ({ controller, context, body, peer }) => {
      const leaf = peer.readOwn()
      if (!leaf || !controller.auth.clientTrust.isOwn(leaf, context.clock.now())) throw errors.UNAUTHORIZED()
      return dataResponse(await extendRouterCertificates(controller, context, leaf, body))
    },
  }),
]

/** A key as RFC 7517 describes it: RSA, or an elliptic curve. */
const publicKey = requiredObject(
  {
    ...{ n: string, e: string, crv: string, x: string, y: string },
    ...{ kty: string, use: string, alg: string, kid: string, x5c: listOf(string), 'x5t#S256': string },
  },
  ['n', 'e', 'crv', 'x', 'y'],
)

/** The operations by which a client verifies the controller. Their responses have no envelope. */
const challenge: readonly AnyOperation[] = [
  defineOperation<{ readonly keyId: string; readonly nonce: string }>({
    ...COMMON,
    id: 'enrollmentChallenge',
    method: 'POST',
    path: '/enroll/challenge',
    summary: 'Proves that the controller holds a key that signs enrollment JWTs.',
    access: BEFORE_TRUST,
    body: readFieldsBody({
      keyId: f.text({ required: true, summary: 'The kid of a key in the key set, or of an enrollment JWT.' }),
      nonce: f.text({ required: true, format: 'uuid', summary: 'A UUID, whose text is signed.' }),
    }),
    returns: {
      kind: 'raw',
      contentType: 'application/json',
      schema: requiredObject({ signature: string, algorithm: string, kid: string, caPool: string }),
    },
    run: ({ controller, body }) => {
      const proof = answerChallenge(controller.authority, body.keyId, body.nonce)
      return rawResponse('application/json', `${JSON.stringify(proof)}\n`)
    },
  }),
  defineOperation({
    ...COMMON,
    id: 'getEnrollmentJwks',
    method: 'GET',
    path: '/enroll/jwks',
    summary: 'Lists the public keys that sign enrollment JWTs.',
    access: BEFORE_TRUST,
    returns: { kind: 'raw', contentType: 'application/json', schema: requiredObject({ keys: listOf(publicKey) }) },
    run: ({ controller }) => rawResponse('application/json', `${JSON.stringify(toKeySet(controller.authority))}\n`),
  }),
]

export const enrollOperations: readonly AnyOperation[] = [
  defineOperation<EnrollBody>({
    ...COMMON,
    id: 'enroll',
    method: 'POST',
    path: '/enroll',
    summary: 'Completes an enrollment of any method.',
    access: PUBLIC,
    query: {
      token: { ...token, refuse: () => errors.INVALID_ENROLLMENT_TOKEN() },
      method: { schema: string },
    },
    body: enrollBody,
    returns: { kind: 'data', schema: objectOf({ ...certificates, username: string }) },
    errorStatuses: [409],
    hasOneForm: true,
    async run(call) {
      const { query, headers, body } = call
      const { token, method } = query as { token?: string; method?: string }
      const isPem = REQUEST_TYPES.some((type) => String(headers['content-type']).startsWith(type))
      if (isPem) assertAcceptsJson(headers.accept as string | undefined)
      return completeEnrollment(call, request(call, method, token, body))
    },
  }),
  ...byMethod,
  ...ofRouters,
  ...challenge,
]
