// Creates the metrics if a listener carries them: without one, nothing is counted and their library is not loaded.
import type { Controller } from '../../src/controller/controller.ts'
import type { Load } from './load.ts'
import type { Metrics } from './metrics.ts'

export async function openMetrics(controller: Controller, load: Load): Promise<Metrics | undefined> {
  if (!controller.config.listeners.some(({ apis }) => apis.includes('metrics'))) return undefined
  const { Metrics } = await import('./metrics.ts')
  return new Metrics(controller, load)
}
