// Snapshots on the fabric API, which tools of operators request there.
import { f } from '../../../src/definitions/schema/fields.ts'
import { requiredObject, text } from '../../../src/definitions/schema/json-schema.ts'
import { invalidError } from '../../../src/foundation/errors.ts'
import { type AnyOperation, defineOperation, readFieldsBody } from '../../api/operation.ts'
import { dataResponse, emptyResponse } from '../../api/responses.ts'
import { createSnapshot, SNAPSHOT } from '../management-api/database.ts'
import { FABRIC } from './view-operations.ts'

export const snapshotOperations: readonly AnyOperation[] = [
  defineOperation({
    ...FABRIC,
    ...SNAPSHOT,
    id: 'createDatabaseSnapshot',
    path: '/database',
    summary: 'Makes a verified backup in the folder of backups, at most once a minute.',
    returns: { kind: 'empty' },
    async run(call) {
      await createSnapshot(call)
      return emptyResponse()
    },
  }),
  defineOperation<{ readonly path?: string }>({
    ...FABRIC,
    ...SNAPSHOT,
    id: 'createDatabaseSnapshotWithPath',
    path: '/database/snapshot',
    summary: 'Makes a verified backup in the folder of backups, at most once a minute, and shows its path.',
    body: readFieldsBody(
      { path: f.text({ summary: 'Must be empty: the controller chooses the file.' }) },
      { isRequired: false },
    ),
    returns: { kind: 'data', schema: requiredObject({ path: text }) },
    async run(call) {
      const { path } = call.body ?? {}
      // A caller of the API must not choose what is written on the machine.
      if (path) throw invalidError('path', 'must be empty: the controller chooses the file', path)
      return dataResponse({ path: await createSnapshot(call) })
    },
  }),
]
