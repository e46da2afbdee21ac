// The metrics as administrators read them, wherever a monitoring system does.
import { listOf, requiredObject, text, time } from '../../../src/definitions/schema/json-schema.ts'
import { toIsoTime } from '../../../src/foundation/clock.ts'
import type { Monitor } from '../../api/monitor.ts'
import { type AnyOperation, defineOperation } from '../../api/operation.ts'
import { dataResponse } from '../../api/responses.ts'
import { listMeasurements } from '../../monitoring/measurements.ts'

const sample = requiredObject({
  name: { ...text, description: 'As monitoring systems know it, without the prefix controller_.' },
  labels: { type: 'object', additionalProperties: text },
  value: { type: 'number' },
})

interface NamedSample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

export const metricsOperations: readonly AnyOperation[] = [
  defineOperation({
    id: 'readMetrics',
    apis: ['management'],
    topic: 'metrics',
    isOwn: true,
    method: 'GET',
    path: '/controller/metrics',
    summary:
      'Shows the metrics; those of requests only if a listener carries metrics, because requests are not counted without.',
    access: { permission: 'metrics.read', grantedTo: 'administrator' },
    returns: {
      kind: 'data',
      schema: requiredObject({ at: time, startedAt: time, samples: listOf(sample) }),
    },
    async run({ controller, monitor }) {
      const { clock, contexts, startedAt } = controller
      const samples: NamedSample[] = []
      for (const { name, read } of listMeasurements(controller, contexts.create({ kind: 'system' }), monitor.load))
        for (const { labels = {}, value } of await read()) samples.push({ name, labels, value })
      samples.push(...(await readRequests(monitor)))
      return dataResponse({ at: toIsoTime(clock.now()), startedAt: toIsoTime(startedAt), samples })
    },
  }),
]

async function readRequests({ metrics }: Monitor): Promise<NamedSample[]> {
  if (!metrics) return []
  const { counts, seconds } = await metrics.readRequests()
  return [
    ...counts.map(({ labels = {}, value }) => ({ name: 'requests_total', labels, value })),
    { name: 'request_duration_seconds_sum', labels: {}, value: seconds },
  ]
}
