// Simulated routers in a process of their own, as the bench sees them.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import type { SwarmCommand, SwarmResult } from './swarm-messages.ts'

type Result<K extends SwarmResult['kind']> = Extract<SwarmResult, { kind: K }>

export class Swarm {
  readonly #process: ChildProcess = fork(new URL('./swarm-process.js', import.meta.url))
  readonly #end: Promise<never>

  constructor() {
    this.#end = once(this.#process, 'exit').then(() => {
      throw new Error('the process of the routers ended')
    })
    // It ends when it is closed, too.
    this.#end.catch(() => {})
  }

  /** Runs a command after those before it. @throws Error if the routers could not do it */
  async run<K extends SwarmResult['kind']>(command: SwarmCommand, kind: K): Promise<Result<K>> {
    this.#process.send(command)
    const [result] = (await Promise.race([once(this.#process, 'message'), this.#end])) as [SwarmResult]
    if (result.kind !== kind) throw new Error(result.kind === 'failed' ? result.why : `unexpected: ${result.kind}`)
    return result as Result<K>
  }

  close(): void {
    this.#process.kill()
  }
}
