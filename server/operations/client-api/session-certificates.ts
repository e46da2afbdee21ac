// The certificates of the caller's API session, which its client presents to routers.
import {
  deleteSessionCertificate,
  getSessionCertificate,
  issueSessionCertificate,
} from '../../../src/authentication/api-sessions/session-certificates.ts'
import { getCompiledResource } from '../../../src/definitions/model/index.ts'
import { sessionCertificates } from '../../../src/definitions/resources/session-certificates.ts'
import { f } from '../../../src/definitions/schema/fields.ts'
import { type JsonSchema, text } from '../../../src/definitions/schema/json-schema.ts'
import { readSigningRequest } from '../../../src/pki/requests.ts'
import { type Presentation, renderEntity } from '../../../src/storage/records/presentation.ts'
import { RawJson } from '../../../src/storage/records/raw-json.ts'
import { type AnyOperation, defineOperation, readFieldsBody } from '../../api/operation.ts'
import { listQuery } from '../../api/query.ts'
import { dataResponse, emptyResponse } from '../../api/responses.ts'
import { respondWithList, respondWithRecord } from '../../responses/record-responses.ts'
import { requireApiSessionId } from '../both-apis/current-api-session.ts'
import { requireIdentityId } from '../both-apis/current-identity.ts'

const COMMON = { apis: ['client'] as const, topic: 'current-api-session' }
const LIST = '/current-api-session/certificates'
const ONE = '/current-api-session/certificates/:id'
const READ = { permission: 'session-certificate.read', grantedTo: 'authenticated' } as const

const own: Presentation = { links: ({ id }) => JSON.stringify({ self: { href: `.${LIST}/${id}` } }) }
const presentation = async () => own

const { recordSchema } = getCompiledResource('session-certificates')

/** The record of a certificate, with the authorities that its client is to trust. */
const issuedSchema: JsonSchema = {
  ...recordSchema,
  properties: { ...recordSchema.properties, cas: text },
  required: [...(recordSchema.required ?? []), 'cas'],
}

export const sessionCertificateOperations: readonly AnyOperation[] = [
  defineOperation({
    ...COMMON,
    id: 'listCurrentApiSessionCertificates',
    method: 'GET',
    path: LIST,
    summary: "Lists the certificates of the caller's own session.",
    access: READ,
    query: listQuery,
    returns: { kind: 'list', resource: 'session-certificates' },
    run(call) {
      const restriction = { field: 'apiSessionId', equals: requireApiSessionId(call.context) }
      return respondWithList(call, sessionCertificates, [restriction], { presentation })
    },
  }),
  defineOperation<{ readonly csr: string }>({
    ...COMMON,
    id: 'createCurrentApiSessionCertificate',
    method: 'POST',
    path: LIST,
    summary: "Issues a certificate that is valid for the caller's own session only.",
    access: { permission: 'session-certificate.create', grantedTo: 'authenticated' },
    body: readFieldsBody({ csr: f.text({ required: true, summary: 'A PEM certificate signing request.' }) }),
    returns: { kind: 'data', isNew: true, schema: issuedSchema },
    async run({ controller, context, body }) {
      const holder = { identityId: requireIdentityId(context), apiSessionId: requireApiSessionId(context) }
      const { issued, cas } = await issueSessionCertificate(controller, context, holder, readSigningRequest(body.csr))
      // The client presents it to routers next.
      await controller.routers.sessionSync.settle()
      const { text: record } = await renderEntity(controller.records, context, sessionCertificates, issued, own)
      return dataResponse(new RawJson(`${record.slice(0, -1)},"cas":${JSON.stringify(cas)}}`), { status: 201 })
    },
  }),
  defineOperation({
    ...COMMON,
    id: 'detailCurrentApiSessionCertificate',
    method: 'GET',
    path: ONE,
    summary: "Shows one certificate of the caller's own session.",
    access: READ,
    returns: { kind: 'record', resource: 'session-certificates' },
    async run(call) {
      const { context, params } = call
      const { id } = await getSessionCertificate(context, requireApiSessionId(context), params.id ?? '')
      return respondWithRecord(call, sessionCertificates, id, { presentation })
    },
  }),
  defineOperation({
    ...COMMON,
    id: 'deleteCurrentApiSessionCertificate',
    method: 'DELETE',
    path: ONE,
    summary: "Deletes one certificate of the caller's own session.",
    access: { permission: 'session-certificate.delete', grantedTo: 'authenticated' },
    returns: { kind: 'empty' },
    async run({ controller, context, params }) {
      await deleteSessionCertificate(controller.entities, context, requireApiSessionId(context), params.id ?? '')
      return emptyResponse()
    },
  }),
]
