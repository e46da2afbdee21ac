// The audit, as administrators read it, and its verification.

import { compileFieldsSchema } from '../../../src/definitions/model/record-schema.ts'
import type { JsonSchema } from '../../../src/definitions/schema/json-schema.ts'
import { notFoundError } from '../../../src/foundation/errors.ts'
import type { ChainedRecord } from '../../../src/storage/audit/audit-chain.ts'
import {
  auditFields,
  auditSource,
  findAuditRecord,
  listAuditRecords,
  mayReadAudited,
  queryAuditRows,
  toAuditJson,
  verifyAudit,
} from '../../../src/storage/audit/audit-records.ts'
import { planList } from '../../../src/storage/lists/list-plan.ts'
import { RawJson } from '../../../src/storage/records/raw-json.ts'
import { type AnyOperation, defineOperation } from '../../api/operation.ts'
import { listParameters, listQuery } from '../../api/query.ts'
import { dataResponse } from '../../api/responses.ts'
import { respondWithListing } from '../../responses/lists.ts'

const COMMON = {
  apis: ['management'],
  method: 'GET',
  topic: 'audit',
  access: { permission: 'audit.read', grantedTo: 'administrator', isFiltered: true },
  isOwn: true,
} as const

const described = compileFieldsSchema(auditFields)
const recordSchema: JsonSchema = {
  ...described,
  properties: {
    id: { type: 'integer', description: 'Its number in the order of all records.' },
    ...described.properties,
  },
  required: ['id', ...(described.required ?? [])],
  'x-columns': ['id', 'at', 'actorName', 'operation', 'resource', 'entityName', 'entityId'],
  'x-example-filter': 'resource = "identities" and operation != "create"',
}

const end: JsonSchema = {
  type: 'object',
  nullable: true,
  properties: { id: { type: 'integer' }, hash: { type: 'string' } },
}

export const auditOperations: readonly AnyOperation[] = [
  defineOperation({
    ...COMMON,
    id: 'listAudit',
    path: '/controller/audit',
    summary: 'Lists who changed what, when and from where, the newest first.',
    query: listQuery,
    returns: { kind: 'data', schema: { type: 'array', items: recordSchema } },
    run(call) {
      const { context } = call
      const { store } = call.controller
      const render = (records: readonly ChainedRecord[]) => records.map(toAuditJson)
      return respondWithListing(call, planList(listParameters(call.query)), {
        filterableFields: auditSource.filterableFields,
        fetchPage: (plan) => listAuditRecords(store, context, plan),
        render,
        stream: { query: (plan) => queryAuditRows(store, context, plan), render },
      })
    },
  }),
  defineOperation({
    ...COMMON,
    access: { permission: 'audit.read', grantedTo: 'administrator' },
    id: 'verifyAudit',
    path: '/controller/audit/verify',
    hasNoTimeout: true,
    summary: 'Verifies that the audit is one unbroken chain, without changed or removed records.',
    query: {
      hash: {
        schema: { type: 'string', description: 'The hash of an earlier record, which must still exist.' },
      },
    },
    returns: {
      kind: 'data',
      schema: {
        type: 'object',
        properties: {
          isWhole: { type: 'boolean' },
          records: { type: 'integer' },
          first: end,
          last: {
            ...end,
            description: 'Store its hash: a later verification with it detects that the newest records were removed.',
          },
          findings: { type: 'array', items: { type: 'string' } },
        },
      },
    },
    async run({ controller, context, query }) {
      const { findings, records, first, last } = await verifyAudit(
        controller.store,
        context,
        query.hash as string | undefined,
      )
      const toEnd = (record: typeof first) => (record ? { id: record.n, hash: record.hash } : null)
      return dataResponse({ isWhole: findings.length === 0, records, first: toEnd(first), last: toEnd(last), findings })
    },
  }),
  defineOperation({
    ...COMMON,
    id: 'detailAudit',
    path: '/controller/audit/:id',
    summary: 'Shows one audit record.',
    returns: { kind: 'data', schema: recordSchema },
    async run({ context, params }) {
      const { id = '' } = params
      const row = /^\d{1,15}$/.test(id) ? await findAuditRecord(context, Number(id)) : undefined
      if (!row || !mayReadAudited(context.caller, row.resource)) throw notFoundError('audit record', id)
      return dataResponse(new RawJson(toAuditJson(row)))
    },
  }),
]
