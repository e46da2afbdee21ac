// The duty to serve routers at the address that leads to all controllers, lost and gained while one begins with it.
import { createServer, type Server } from 'node:net'
import { afterEach, expect, it } from 'vitest'
import { RoutersInTurn } from '../../server/listeners/routers-in-turn.ts'

const servers: Server[] = []
afterEach(() => {
  for (const server of servers.splice(0)) server.close()
})

type Parts = ConstructorParameters<typeof RoutersInTurn>[0]

/** Work that ends when a test says so. */
function heldUp() {
  const ends: (() => void)[] = []
  const work = () => new Promise<void>((resolve) => ends.push(resolve))
  const end = () => {
    for (const resolve of ends.splice(0)) resolve()
  }
  return { work, end, count: () => ends.length }
}

function open({ catchUp, bind }: { catchUp?: () => Promise<void>; bind?: (server: Server) => Promise<void> }) {
  let [acquire, lose, takeovers] = [() => {}, () => {}, 0]
  const duty = {
    isHeld: false,
    onAcquired(listener: () => void) {
      acquire = listener
    },
    onLost(listener: () => void) {
      lose = listener
    },
    close: async () => {},
  }
  const server = createServer()
  servers.push(server)
  const nothing = () => {}
  const takeOver = async () => {
    takeovers += 1
  }
  const parts = {
    controller: {
      store: { catchUp: catchUp ?? (async () => {}) },
      fabric: { begin: nothing, leave: nothing },
      routers: { endedSessions: { takeOver: async () => {} }, sessionSync: { takeOver } },
    },
    cluster: { seekRouters: () => duty },
    presence: { begin: nothing, end: nothing },
    controlListener: { begin: nothing, end: nothing },
    servers: [{ server, bind: () => bind?.(server) ?? Promise.resolve() }],
  }
  new RoutersInTurn(parts as unknown as Parts)
  const change = (isHeld: boolean) => {
    duty.isHeld = isHeld
    if (isHeld) acquire()
    else lose()
  }
  return { change, server, countTakeovers: () => takeovers }
}

const listen = (server: Server) => new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))

it('leaves no server that listens, if the duty was lost while it was bound', async () => {
  const lookUp = heldUp()
  const { change, server } = open({ bind: (one) => lookUp.work().then(() => listen(one)) })
  change(true)
  await expect.poll(lookUp.count).toBe(1)
  change(false)
  lookUp.end()
  const isOver = new Promise((resolve) => server.once('close', resolve))
  await isOver
  expect(server.listening).toBe(false)
})

it('takes the routers over once, if the duty was lost and gained while it caught up', async () => {
  const catchingUp = heldUp()
  const { change, countTakeovers } = open({ catchUp: catchingUp.work })
  change(true)
  change(false)
  change(true)
  await expect.poll(catchingUp.count).toBe(2)
  catchingUp.end()
  await expect.poll(countTakeovers).toBe(1)
  // The earlier beginning goes on in the same turn of the loop, if at all.
  await new Promise((resolve) => setImmediate(resolve))
  expect(countTakeovers()).toBe(1)
})
