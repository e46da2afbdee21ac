// The process of the simulated routers: does what the bench says, one command after the other.
import { forEach } from '../controller/api.ts'
import { SimulatedRouter } from './simulated-router.ts'
import type { Dialed, SwarmCommand, SwarmResult } from './swarm-messages.ts'

let routers: readonly SimulatedRouter[] = []

async function run(command: SwarmCommand): Promise<SwarmResult> {
  switch (command.kind) {
    case 'connect':
      routers = await forEach(command.routers, (router) =>
        SimulatedRouter.connect(command.target, router, command.release),
      )
      return { kind: 'connected' }
    case 'synchronize':
      return { kind: 'synchronized', ...(await getRouter(command.at).synchronize()) }
    case 'countAnnouncements':
      return { kind: 'announcements', count: routers.reduce((sum, { announcements }) => sum + announcements, 0) }
    case 'follow':
      await Promise.all(routers.map((router) => router.follow()))
      return { kind: 'following' }
    case 'awaitChanges':
      await Promise.all(routers.map((router) => router.awaitChanges(command.count)))
      return { kind: 'changes', count: countChanges() }
    case 'countChanges':
      return { kind: 'changes', count: countChanges() }
    case 'dial':
      return { kind: 'dialed', ...(await dial(command)) }
  }
}

const countChanges = () => routers.reduce((sum, { changes }) => sum + changes, 0)

function getRouter(at: number): SimulatedRouter {
  const router = routers[at]
  if (!router) throw new Error(`there is no router ${at}`)
  return router
}

/** So many clients at a router dial, each again as soon as it has a response. */
async function dial({ at, tokens, inFlight, milliseconds }: SwarmCommand & { kind: 'dial' }): Promise<Dialed> {
  const router = getRouter(at)
  const latencies: number[] = []
  let refused = 0
  const begun = performance.now()
  const client = async () => {
    while (performance.now() - begun < milliseconds) {
      const dialedAt = performance.now()
      if (!(await router.dial(tokens))) refused += 1
      latencies.push(performance.now() - dialedAt)
    }
  }
  await Promise.all(Array.from({ length: inFlight }, client))
  const seconds = (performance.now() - begun) / 1000
  return { completed: latencies.length, refused, seconds, latencies: latencies.sort((a, b) => a - b) }
}

process.on('message', (command: SwarmCommand) => {
  run(command)
    .catch((error: unknown): SwarmResult => ({ kind: 'failed', why: String(error) }))
    .then((result) => process.send?.(result))
})
process.on('disconnect', () => process.exit(0))
