// The level of the log of the running controller.

import { f } from '../../../src/definitions/schema/fields.ts'
import { requiredObject } from '../../../src/definitions/schema/json-schema.ts'
import { errors } from '../../../src/foundation/errors.ts'
import { logLevels } from '../../../src/foundation/log.ts'
import { LOG_LEVEL } from '../../../src/storage/audit/audit.ts'
import { type AnyOperation, defineOperation, readFieldsBody } from '../../api/operation.ts'
import { dataResponse } from '../../api/responses.ts'

type Level = (typeof logLevels)[number]

const COMMON = {
  apis: ['management'],
  isOwn: true,
  topic: 'log',
  path: '/controller/log/level',
  returns: { kind: 'data', schema: requiredObject({ level: { type: 'string', enum: logLevels } }) },
} as const

export const logLevelOperations: readonly AnyOperation[] = [
  defineOperation({
    ...COMMON,
    id: 'showLogLevel',
    // A command on a data directory has no log to ask about.
    errorStatuses: [400],
    method: 'GET',
    summary: 'Shows how much the running controller logs.',
    access: { permission: 'log.read', grantedTo: 'administrator' },
    run: ({ controller: { log } }) => dataResponse({ level: requireLevel(log.level) }),
  }),
  defineOperation({
    ...COMMON,
    id: 'setLogLevel',
    method: 'PUT',
    summary: 'Changes how much the running controller logs, until its next start.',
    access: { permission: 'log.update', grantedTo: 'administrator' },
    body: readFieldsBody<{ readonly level: Level }>({ level: f.choice(logLevels, { required: true }) }),
    async run({ controller: { log }, context, body: { level } }) {
      const before = { level: requireLevel(log.level) }
      const at = context.clock.now()
      await context.write(async ({ record }) => {
        record({ ...LOG_LEVEL, audit: 'values', isAuditOnly: true, id: '', at, before, after: { level } })
      })
      log.level = level
      return dataResponse({ level })
    },
  }),
]

/** @throws COULD_NOT_VALIDATE if there is no log, as in an offline command */
function requireLevel(level: string | undefined): string {
  if (level === undefined) throw errors.COULD_NOT_VALIDATE({ message: 'only a running controller has a log' })
  return level
}
