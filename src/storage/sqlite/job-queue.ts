// The transactions that wait for their turn: those of administrators and of the controller itself take turns with all others, so that a
// thousand clients that sign in do not delay the one that repairs the network, nor the other way round.
import type { Job } from './body-runner.ts'

export class JobQueue {
  #privileged: Job[] = []
  #others: Job[] = []
  #isTurnOfOthers = false

  get length(): number {
    return this.#privileged.length + this.#others.length
  }

  add(job: Job): void {
    const jobs = job.origin.isPrivileged ? this.#privileged : this.#others
    jobs.push(job)
  }

  /** Removes all. Returns them in their turns. */
  takeAll(): Job[] {
    const [privileged, others] = [this.#privileged, this.#others]
    this.#privileged = []
    this.#others = []
    if (privileged.length === 0) return others
    if (others.length === 0) return privileged
    const [first, second] = this.#isTurnOfOthers ? [others, privileged] : [privileged, others]
    const jobs: Job[] = []
    for (let at = 0; at < Math.max(first.length, second.length); at++) {
      for (const job of [first[at], second[at]]) if (job) jobs.push(job)
    }
    return jobs
  }

  /** Returns those that had no turn yet to their places before all others. */
  putBack(jobs: readonly Job[]): void {
    const [next] = jobs
    this.#isTurnOfOthers = next !== undefined && next.origin.isPrivileged !== true
    this.#privileged = [...jobs.filter(({ origin }) => origin.isPrivileged), ...this.#privileged]
    this.#others = [...jobs.filter(({ origin }) => !origin.isPrivileged), ...this.#others]
  }
}
