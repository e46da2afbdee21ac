// The operation by which a monitoring system reads the metrics.
import { type AnyOperation, defineOperation } from '../../api/operation.ts'
import { rawResponse } from '../../api/responses.ts'
import type { Metrics } from '../../monitoring/metrics.ts'

export function createMetricsOperation(metrics: Metrics): AnyOperation {
  return defineOperation({
    id: 'showMetrics',
    apis: [],
    atRoot: ['/metrics'],
    listenerApi: 'metrics',
    topic: 'informational',
    method: 'GET',
    path: '/',
    summary: 'The metrics of the controller, in the text format of Prometheus.',
    access: { public: 'only a listener that an operator opened for it carries it, and it names no record' },
    grantsNothing: 'it tells about this process',
    returns: { kind: 'raw', contentType: metrics.contentType },
    hasOneForm: true,
    run: async () => rawResponse(metrics.contentType, await metrics.render()),
  })
}
