// The worker thread of a generator: prepares runs, and does one after the other as it is told.
import { parentPort } from 'node:worker_threads'
import { ClosedLoopLoad } from './closed-loop.ts'
import { CrowdLoad } from './crowd.ts'
import type { FromWorker, Load, Plan, ToWorker } from './plan.ts'
import { StormLoad } from './storm.ts'

const PROGRESS_INTERVAL_MS = 200

const port = parentPort
if (!port) throw new Error('this is a worker thread')
const tell = (message: FromWorker) => port.postMessage(message)
const loads = new Map<number, Load>()

function end(run: number): void {
  loads.get(run)?.close()
  loads.delete(run)
}

port.on('message', (message: ToWorker) => {
  const { run } = message
  const tellFailure = ({ message }: Error) => {
    end(run)
    tell({ kind: 'failed', message })
  }
  if (message.kind === 'prepare') prepare(run, message.plan).catch(tellFailure)
  else if (message.kind === 'go') go(run, message.milliseconds, message.isLast).catch(tellFailure)
  else loads.get(run)?.stop()
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

async function prepare(run: number, plan: Plan): Promise<void> {
  const load = createLoad(plan)
  loads.set(run, load)
  tell({ kind: 'ready', meanBodyBytes: await load.prepare() })
}

async function go(run: number, milliseconds: number | undefined, isLast: boolean): Promise<void> {
  const running = loads.get(run)
  if (!running) throw new Error('nothing was prepared')
  const ticking = setInterval(() => tell({ kind: 'progress', completed: running.completed }), PROGRESS_INTERVAL_MS)
  try {
    tell({ kind: 'done', outcome: await running.run(milliseconds) })
  } finally {
    clearInterval(ticking)
    if (isLast) end(run)
  }
}
