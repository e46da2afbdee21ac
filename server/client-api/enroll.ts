// Enrollment over the client API: one-time tokens become credentials.
import { enroll } from '../../src/enrollment/enroll.ts'
import { errors } from '../../src/errors.ts'
import { f } from '../../src/schema/fields.ts'
import { data } from '../answers.ts'
import { type AnyOperation, type BodyReader, fieldsBody, operation } from '../operation.ts'

const PUBLIC = { public: 'the token, or the certificate, is what lets a caller in' } as const
const REQUEST_TYPES = ['application/x-pem-file', 'application/pkcs7', 'text/plain'] as const

/** What counts of it depends on the method. */
interface EnrollBody {
  readonly clientCsr?: string
  readonly username?: string
  readonly password?: string
  readonly token?: string
}

const credentials = {
  clientCsr: f.text({ summary: 'A PEM certificate signing request.' }),
  username: f.text({ minLength: 4, maxLength: 100 }),
  password: f.text({ minLength: 5, maxLength: 100, secret: true }),
}
const jsonBody = fieldsBody<EnrollBody>(credentials, { isRequired: false })

/** JSON, or a signing request as it is. */
const enrollBody: BodyReader<EnrollBody> = {
  schema: jsonBody.schema,
  isRequired: false,
  contentTypes: [...jsonBody.contentTypes, ...REQUEST_TYPES],
  read: (sent, unknown) => (typeof sent === 'string' ? { clientCsr: sent } : jsonBody.read(sent, unknown)),
}

function request(method: string, token: string | undefined, { clientCsr, username, password }: EnrollBody) {
  return {
    method,
    token,
    ...(clientCsr === undefined ? {} : { csr: clientCsr }),
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
  }
}

export const enrollOperations: readonly AnyOperation[] = [
  operation<EnrollBody>({
    id: 'enroll',
    apis: ['client'],
    topic: 'enrollment',
    method: 'POST',
    path: '/enroll',
    summary: 'Completes an enrollment of any method.',
    access: PUBLIC,
    query: { token: { schema: { type: 'string' } }, method: { schema: { type: 'string' } } },
    body: enrollBody,
    returns: { kind: 'data', schema: { type: 'object' } },
    async run({ context, query, body }) {
      const { token, method = 'ott' } = query as { token?: string; method?: string }
      return data(await enroll(context, request(method, token, body)))
    },
  }),
  operation<EnrollBody>({
    id: 'enrollOtt',
    apis: ['client'],
    topic: 'enrollment',
    method: 'POST',
    path: '/enroll/ott',
    summary: 'Turns a one-time token and a signing request into a client certificate.',
    access: PUBLIC,
    body: fieldsBody<EnrollBody>({ ...credentials, token: f.text({ required: true }) }),
    returns: { kind: 'data', schema: { type: 'object' } },
    run: async ({ context, body }) => data(await enroll(context, request('ott', body.token, body))),
  }),
  operation<EnrollBody>({
    id: 'enrollUpdb',
    apis: ['client'],
    topic: 'enrollment',
    method: 'POST',
    path: '/enroll/updb',
    summary: 'Turns a one-time token into a username with a password.',
    access: PUBLIC,
    query: { token: { schema: { type: 'string', format: 'uuid' }, isRequired: true } },
    body: fieldsBody<EnrollBody>(credentials),
    returns: { kind: 'data', schema: { type: 'object' } },
    async run({ context, query, body }) {
      if (!body.password) throw errors.COULD_NOT_VALIDATE({ field: 'password', reason: 'is required' })
      return data(await enroll(context, request('updb', query.token as string, body)))
    },
  }),
]
