// A port that nothing listens at.
import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

/** Below the ports that systems choose for connections, and for listeners without a port: these take no port that a test has found. */
const LOWEST = 10_000
const HIGHEST = 32_000

const ports = new Set<number>()

/** Another process may take it before it is used, which is unlikely: each looks at random. */
export async function findFreePort(): Promise<number> {
  for (;;) {
    const port = randomInt(LOWEST, HIGHEST)
    if (ports.has(port) || !(await isFree(port))) continue
    ports.add(port)
    return port
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer()
      .once('error', () => resolve(false))
      .listen(port, '127.0.0.1', () => probe.close(() => resolve(true)))
  })
}
