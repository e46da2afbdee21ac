// The inventory of certificates, and the controller's own: their state, renewal and rotation.

import { certificates } from '../../../src/definitions/resources/certificates.ts'
import { f } from '../../../src/definitions/schema/fields.ts'
import { objectOf, text, time } from '../../../src/definitions/schema/json-schema.ts'
import { toIsoTime } from '../../../src/foundation/clock.ts'
import { invalidError } from '../../../src/foundation/errors.ts'
import { toCertificateEntry } from '../../../src/maintenance/certificates/inventory.ts'
import { computeFingerprint256, readNotAfter } from '../../../src/pki/certificates.ts'
import { parseDuration } from '../../../src/settings/setting-types.ts'
import { type AnyOperation, type Call, defineOperation, readFieldsBody } from '../../api/operation.ts'
import { listQuery } from '../../api/query.ts'
import { dataResponse, emptyResponse } from '../../api/responses.ts'
import { respondWithList } from '../../responses/record-responses.ts'

const COMMON = { apis: ['management'], isOwn: true } as const
const READ = { permission: 'certificate.read', grantedTo: 'administrator' } as const
const UPDATE = { permission: 'certificate.update', grantedTo: 'administrator' } as const

// More than a person reads; `totalMissing` in the status is the number of all.
const MAX_MISSING = 500

/** In place of a duration: the setting. */
const WARNING_TIME = 'warnBefore'

const ownCertificate = objectOf({ fingerprint: text, subject: text, notAfter: time })

const statusSchema = objectOf({
  trustDomain: { ...text, description: 'The trust domain of SPIFFE ids, which never changes.' },
  root: { ...ownCertificate, description: 'The root that issues.' },
  intermediate: ownCertificate,
  server: ownCertificate,
  previousRoot: { ...ownCertificate, nullable: true, description: 'The root that is being replaced.' },
  totalMissing: {
    type: 'integer',
    description: 'How many identities and routers have not fetched the new root, while it replaces another one.',
  },
})

const missingHolder = {
  ...objectOf({
    kind: { ...text, enum: ['identity', 'router'] },
    id: text,
    name: text,
    remedy: { ...text, description: 'The command by which it learns the new root.' },
  }),
  'x-columns': ['kind', 'name', 'remedy'],
}

export const certificateOperations: readonly AnyOperation[] = [
  defineOperation({
    ...COMMON,
    id: 'listCertificates',
    topic: certificates.plural,
    method: 'GET',
    path: '/controller/certificates',
    summary: 'Lists the certificates that the network depends on.',
    access: READ,
    query: {
      ...listQuery,
      expiring: {
        schema: {
          ...text,
          'x-value-if-omitted': WARNING_TIME,
          description:
            'Only those that end within this time, such as 30d, or have ended; those that end first come first. warnBefore is the setting certificates.warnBefore, also if a flag has no value.',
        },
      },
    },
    returns: { kind: 'list', resource: certificates.plural },
    run(call) {
      const { expiring, ...query } = call.query
      if (expiring === undefined) return respondWithList(call, certificates, [])
      const { config } = call.controller
      const withinMs =
        expiring === WARNING_TIME ? config['certificates.warnBefore'] : readDurationParameter(String(expiring))
      const restriction = { field: 'notAfter', atMost: call.context.clock.now() + withinMs }
      return respondWithList({ ...call, query: { sort: 'notAfter', ...query } }, certificates, [restriction])
    },
  }),
  defineOperation({
    ...COMMON,
    id: 'detailPkiStatus',
    topic: 'pki',
    method: 'GET',
    path: '/controller/pki/status',
    summary: "Shows the controller's own certificates, and how far a replacement of its root is.",
    access: READ,
    returns: { kind: 'data', schema: statusSchema },
    run: async (call) => dataResponse(await describeStatus(call)),
  }),
  defineOperation({
    ...COMMON,
    id: 'listMissingRoot',
    topic: 'pki',
    method: 'GET',
    path: '/controller/pki/missing-root',
    summary: 'Lists identities and routers that have not fetched the new root, while it replaces another one.',
    access: READ,
    returns: { kind: 'data', schema: { type: 'array', items: missingHolder, maxItems: MAX_MISSING } },
    run: async ({ controller, context }) =>
      dataResponse(await controller.certificates.receipts.listMissing(context.db, MAX_MISSING)),
  }),
  defineOperation({
    ...COMMON,
    id: 'renewServerCertificate',
    topic: 'pki',
    method: 'POST',
    path: '/controller/pki/renew',
    summary: 'Renews the server certificate now. Its key stays the same.',
    access: UPDATE,
    returns: { kind: 'empty' },
    async run({ controller, context }) {
      await controller.certificates.own.renewServer(context)
      return emptyResponse()
    },
  }),
  defineOperation({
    ...COMMON,
    id: 'rotateIntermediate',
    topic: 'pki',
    method: 'POST',
    path: '/controller/pki/rotate-intermediate',
    summary: 'Replaces the intermediate that issues certificates. Those that it issued remain valid.',
    access: UPDATE,
    returns: { kind: 'empty' },
    errorStatuses: [409],
    async run({ controller, context }) {
      await controller.certificates.own.rotateIntermediate(context)
      return emptyResponse()
    },
  }),
  defineOperation({
    ...COMMON,
    id: 'rotateRoot',
    topic: 'pki',
    method: 'POST',
    path: '/controller/pki/rotate-root',
    summary: 'Begins the replacement of the root. Clients trust the controller by either root until it is finished.',
    access: UPDATE,
    returns: { kind: 'empty' },
    errorStatuses: [409],
    async run({ controller, context }) {
      await controller.certificates.own.rotateRoot(context)
      return emptyResponse()
    },
  }),
  defineOperation<{ readonly force: boolean }>({
    ...COMMON,
    id: 'finishRootRotation',
    topic: 'pki',
    method: 'POST',
    path: '/controller/pki/finish-root-rotation',
    summary: 'Ends the replacement of the root: clients that know only the previous one must enroll again.',
    access: UPDATE,
    body: readFieldsBody<{ readonly force: boolean }>(
      { force: f.bool({ summary: 'Whether to end it although some have not fetched the new root.' }) },
      { isRequired: false },
    ),
    returns: { kind: 'empty' },
    errorStatuses: [409],
    async run({ controller, context, body }) {
      await controller.certificates.own.finishRootRotation(context, body.force)
      return emptyResponse()
    },
  }),
]

function readDurationParameter(duration: string): number {
  const milliseconds = parseDuration(duration)
  if (milliseconds === undefined) throw invalidError('expiring', 'must be a duration such as 30d', duration)
  return milliseconds
}

async function describeStatus({ controller, context }: Call) {
  const { authority, certificates: parts } = controller
  const describe = (certificate: typeof authority.root) => ({
    fingerprint: computeFingerprint256(certificate),
    subject: toCertificateEntry(certificate).subject,
    notAfter: toIsoTime(readNotAfter(certificate)),
  })
  return {
    trustDomain: authority.trustDomain,
    root: describe(authority.root),
    intermediate: describe(authority.intermediate.certificate),
    server: describe(authority.server.certificate),
    previousRoot: authority.previousRoot ? describe(authority.previousRoot) : null,
    totalMissing: await parts.receipts.countMissing(context.db),
  }
}
