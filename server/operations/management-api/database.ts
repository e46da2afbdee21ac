// The care for the data of a running controller: checks, repairs and snapshots.
import { basename } from 'node:path'
import { EMPTY_OR_NULL, toForm } from '../../../src/definitions/schema/json-forms.ts'
import { flag, listOf, orNull, requiredObject, text, time } from '../../../src/definitions/schema/json-schema.ts'
import { toIsoTime } from '../../../src/foundation/clock.ts'
import type { IntegrityReport } from '../../../src/maintenance/integrity/data-integrity.ts'
import { RawJson } from '../../../src/storage/records/raw-json.ts'
import { JSON_FORMS } from '../../api/dialects.ts'
import { type AnyOperation, type Call, defineOperation } from '../../api/operation.ts'
import { acceptedResponse, allResultsResponse, emptyResponse } from '../../api/responses.ts'

const COMMON = { apis: ['management', 'fabric'], topic: 'database' } as const
const MAINTAIN = { permission: 'database.maintain', grantedTo: 'administrator' } as const
const READ = { permission: 'database.read', grantedTo: 'administrator' } as const

/** The members that operations have in common which make a backup on request, on either API. */
export const SNAPSHOT = {
  topic: 'database',
  method: 'POST',
  access: MAINTAIN,
  // It takes as long as the data is large.
  hasNoTimeout: true,
} as const

const statusSchema = requiredObject({
  startTime: { ...time, nullable: true },
  endTime: { ...time, nullable: true },
  error: { ...text, nullable: true, description: 'Why the run itself failed.' },
  fixingErrors: { ...flag, description: 'Whether the run repairs what it finds.' },
  inProgress: flag,
  tooManyErrors: { ...flag, description: 'Whether there are more defects than the results show.' },
  results: orNull(listOf(requiredObject({ description: text, fixed: flag }))),
})

export const databaseOperations: readonly AnyOperation[] = [
  defineOperation({
    ...COMMON,
    id: 'checkDataIntegrity',
    method: 'POST',
    path: '/database/check-data-integrity',
    summary:
      'Starts a check of the data in the background: its file, references, sets, certificates, audit and memory.',
    access: MAINTAIN,
    returns: { kind: 'empty', isAccepted: true },
    run: (call) => start(call, false),
  }),
  defineOperation({
    ...COMMON,
    id: 'fixDataIntegrity',
    method: 'POST',
    path: '/database/fix-data-integrity',
    summary: 'Makes a snapshot, then starts a check of the data that repairs what can be repaired without a loss.',
    access: MAINTAIN,
    returns: { kind: 'empty', isAccepted: true },
    run: (call) => start(call, true),
  }),
  defineOperation({
    ...COMMON,
    id: 'dataIntegrityResults',
    method: 'GET',
    path: '/database/data-integrity-results',
    summary: 'Shows the state and the results of the last check of the data.',
    access: READ,
    returns: { kind: 'data', schema: statusSchema, isPage: true },
    run({ controller, dialect }) {
      const { report } = controller.integrity
      const { length } = report.results
      const results = length === 0 ? new RawJson(toForm(EMPTY_OR_NULL, JSON_FORMS[dialect])) : report.results
      return allResultsResponse({ ...toStatus(report), results }, length)
    },
  }),
  defineOperation({
    ...SNAPSHOT,
    // On the fabric API, tools request it at another path, and expect another response at this one.
    apis: ['management'],
    id: 'createDatabaseSnapshot',
    path: '/database/snapshot',
    summary: 'Makes a verified backup on the machine of the controller, at most once a minute.',
    returns: { kind: 'empty' },
    async run(call) {
      await createSnapshot(call)
      return emptyResponse()
    },
  }),
]

/** Makes a backup, which the audit names. Returns its path. */
export async function createSnapshot({ controller, context }: Pick<Call, 'controller' | 'context'>): Promise<string> {
  const { file } = await controller.backups.createSnapshot()
  await controller.contexts.recordEvent(context.caller, context.origin, {
    operation: 'create',
    resource: 'backups',
    id: basename(file),
  })
  return file
}

function start({ controller, context }: Call, isRepairing: boolean) {
  controller.integrity.start(context, { isRepairing })
  return acceptedResponse()
}

function toStatus({ startTime, endTime, error, ...rest }: IntegrityReport) {
  return {
    startTime: startTime === undefined ? null : toIsoTime(startTime),
    endTime: endTime === undefined ? null : toIsoTime(endTime),
    error: error ?? null,
    ...rest,
  }
}
