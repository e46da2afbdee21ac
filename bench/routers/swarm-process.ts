// The process of the simulated routers: does what the bench says, one command after the other.
import { setTimeout as wait } from 'node:timers/promises'
import { forEach } from '../controller/api.ts'
import type { Target } from '../generator/connection.ts'
import { SimulatedRouter } from './simulated-router.ts'
import type { Dialed, RouterIdentity, SwarmCommand, SwarmResult } from './swarm-messages.ts'

const COME_BACK_MS = 1_000

let routers: readonly SimulatedRouter[] = []

async function run(command: SwarmCommand): Promise<SwarmResult> {
  switch (command.kind) {
    case 'connect':
      routers = await forEach(command.routers, (router) =>
        SimulatedRouter.connect(command.target, router, command.release),
      )
      return { kind: 'connected' }
    case 'stay':
      await Promise.all(command.targets.flatMap((target) => command.routers.map((router) => stay(target, router))))
      return { kind: 'connected' }
    case 'countConnections':
      return { kind: 'connections', count: connections }
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

let connections = 0

/** Resolves once a router follows a controller. From then on, it comes back whenever it loses it. */
async function stay(target: Target, identity: RouterIdentity): Promise<void> {
  const router = await SimulatedRouter.connect(target, identity, 2)
  const isFollowing = await Promise.race([router.follow().then(() => true), router.closed.then(() => false)])
  if (!isFollowing) return comeBack(target, identity)
  connections += 1
  router.closed.then(() => {
    connections -= 1
    return comeBack(target, identity)
  })
}

async function comeBack(target: Target, identity: RouterIdentity): Promise<void> {
  await wait(COME_BACK_MS)
  await stay(target, identity).catch(() => comeBack(target, identity))
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
