// The operations of probes: whether the process runs, and whether it can serve requests.

import { anyObject, flag, listOf, requiredObject, text } from '../../../src/definitions/schema/json-schema.ts'
import { toIsoTime } from '../../../src/foundation/clock.ts'
import type { HealthCheckResult, HealthReport } from '../../../src/maintenance/health.ts'
import { type AnyOperation, defineOperation } from '../../api/operation.ts'
import { dataResponse } from '../../api/responses.ts'

const COMMON = {
  apis: [],
  listenerApi: 'health',
  topic: 'informational',
  method: 'GET',
  path: '/',
  access: { public: 'probes have no credentials, and it tells nothing about the network' },
  grantsNothing: 'it tells about this process',
  returns: { kind: 'data', schema: requiredObject({ healthy: flag, checks: listOf(anyObject) }) },
} as const

export const healthOperations: readonly AnyOperation[] = [
  defineOperation({
    ...COMMON,
    id: 'showHealth',
    atRoot: ['/health', '/health/ready'],
    summary: 'Whether the controller can serve requests: 503 if a check fails.',
    errorStatuses: [503],
    async run({ controller }) {
      const report = await controller.health.report()
      return dataResponse(toHealthRecord(report), { status: report.isHealthy ? 200 : 503 })
    },
  }),
  defineOperation({
    ...COMMON,
    id: 'showLiveness',
    atRoot: ['/health/live'],
    summary:
      'Responds while the process runs. It checks nothing, because a restart would not repair what a check finds.',
    run: () => dataResponse(toHealthRecord({ isHealthy: true, checks: [] })),
  }),
  defineOperation({
    ...COMMON,
    id: 'showHealthChecks',
    // Probes of OpenZiti controllers look there. They read `healthy`: the status is 200 also if a check fails.
    atRoot: ['/health-checks', '/health-checks/v1'],
    summary: 'The results of the checks, for probes of OpenZiti controllers.',
    query: { type: { schema: { ...text, description: '`short` leaves out times and failures.' } } },
    run: async ({ controller, query }) =>
      dataResponse(toHealthRecord(await controller.health.report(), { isShort: query.type === 'short' })),
  }),
]

function toHealthRecord({ isHealthy, checks }: HealthReport, { isShort = false } = {}) {
  return { healthy: isHealthy, checks: checks.map(isShort ? toShortCheck : toCheck) }
}

function toShortCheck({ id, isHealthy }: HealthCheckResult) {
  return { id, healthy: isHealthy }
}

function toCheck(result: HealthCheckResult) {
  const { checkedAt, durationMs, failure } = result
  return {
    ...toShortCheck(result),
    lastCheckTime: toIsoTime(checkedAt),
    // A duration as Go writes it.
    lastCheckDuration: `${durationMs.toFixed(3)}ms`,
    ...(failure
      ? { err: failure.reason, consecutiveFailures: failure.count, failingSince: toIsoTime(failure.since) }
      : {}),
  }
}
