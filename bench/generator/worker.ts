// The worker thread of a generator: does one run after the other as it is told.
import { parentPort } from 'node:worker_threads'
import { ClosedLoopLoad } from './closed-loop.ts'
import { CrowdLoad } from './crowd.ts'
import type { FromWorker, Load, Plan, ToWorker } from './plan.ts'
import { StormLoad } from './storm.ts'

const PROGRESS_INTERVAL_MS = 200

const port = parentPort
if (!port) throw new Error('this is a worker thread')
const tell = (message: FromWorker) => port.postMessage(message)
let load: Load | undefined

function tellFailure({ message }: Error): void {
  load?.close()
  tell({ kind: 'failed', message })
}

port.on('message', (message: ToWorker) => {
  if (message.kind === 'prepare') prepare(message.plan).catch(tellFailure)
  else if (message.kind === 'go') run(message.milliseconds, message.isLast).catch(tellFailure)
  else load?.stop()
})

function createLoad(plan: Plan): Load {
  switch (plan.load.kind) {
    case 'crowd':
      return new CrowdLoad(plan, plan.load)
    case 'storm':
      return new StormLoad(plan, plan.load)
    default:
      return new ClosedLoopLoad(plan, plan.load)
  }
}

async function prepare(plan: Plan): Promise<void> {
  load = createLoad(plan)
  tell({ kind: 'ready', meanBodyBytes: await load.prepare() })
}

async function run(milliseconds: number | undefined, isLast: boolean): Promise<void> {
  const running = load
  if (!running) throw new Error('nothing was prepared')
  const ticking = setInterval(() => tell({ kind: 'progress', completed: running.completed }), PROGRESS_INTERVAL_MS)
  try {
    tell({ kind: 'done', outcome: await running.run(milliseconds) })
  } finally {
    clearInterval(ticking)
    if (isLast) running.close()
  }
}
