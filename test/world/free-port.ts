// A port that nothing listens at.
import { createServer } from 'node:net'

/** Another process may take it before it is used, which no test of this machine does. */
export function findFreePort(): Promise<number> {
  return new Promise((resolve) => {
    const probe = createServer().listen(0, '127.0.0.1', () => {
      const { port } = probe.address() as { port: number }
      probe.close(() => resolve(port))
    })
  })
}
