// The bare server as the bench sees it.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import type { Target } from '../generator/connection.ts'
import { Generator } from '../generator/generator.ts'
import type { FloorResponse } from './floor-server.ts'
import { cpuMicroseconds } from './process-figures.ts'

export class Floor {
  readonly target: Target
  /** One of its own, so that its connections stay open while the controller is measured. */
  readonly generator = new Generator()
  readonly #child: ChildProcess

  private constructor(child: ChildProcess, port: number) {
    this.#child = child
    this.target = { host: '127.0.0.1', port }
  }

  /** Starts it with the certificate of the controller whose data directory this is. */
  static async start(dataDirectory: string): Promise<Floor> {
    const child = fork(new URL('./floor-server.js', import.meta.url), [dataDirectory])
    const { port } = await said<{ port: number }>(child)
    return new Floor(child, port)
  }

  get cpuMicroseconds(): number {
    return cpuMicroseconds(this.#child.pid ?? 0)
  }

  /** Sets how the server responds to the requests that follow. */
  async respondWith(response: FloorResponse): Promise<void> {
    this.#child.send(response)
    await said(this.#child)
  }

  async close(): Promise<void> {
    const end = once(this.#child, 'exit')
    this.#child.kill()
    await Promise.all([end, this.generator.close()])
  }
}

/** The next thing a child says. @throws where it ends before */
function said<T>(child: ChildProcess): Promise<T> {
  return new Promise((resolve, reject) => {
    const end = (code: number | null) => reject(new Error(`the bare server ended with ${code}`))
    child.once('exit', end)
    child.once('message', (message) => {
      child.off('exit', end)
      resolve(message as T)
    })
  })
}
