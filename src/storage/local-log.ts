// The log of a controller that is alone: its database. Others may follow it, but none commits.
import { newId } from '../foundation/ids.ts'
import type { CommitDraft, CommitLog, LoggedCommit, Turn } from './commit-log.ts'

const NODE = 'local'

export class LocalLog implements CommitLog {
  readonly node = null
  readonly isDeciding = false
  readonly #followers = new Set<(commit: LoggedCommit) => void>()
  // The same for every group, because transactions without followers may not cost more.
  readonly #turn: Promise<Turn> = Promise.resolve({
    missed: [],
    publish: async (commit) => this.#publish(commit),
    abandon: async () => {},
  })

  get needsRows(): boolean {
    return this.#followers.size > 0
  }

  acquire(): Promise<Turn> {
    return this.#turn
  }

  /** None, because this controller made all of them. */
  async readAfter(): Promise<readonly LoggedCommit[]> {
    return []
  }

  /** Calls `follower` with each commit, once it is on disk. Returns the function that ends this. */
  follow(follower: (commit: LoggedCommit) => void): () => void {
    this.#followers.add(follower)
    return () => this.#followers.delete(follower)
  }

  #publish(draft: CommitDraft): LoggedCommit {
    const commit = { ...draft, chain: '', id: newId(), node: NODE }
    for (const follower of this.#followers) follower(commit)
    return commit
  }
}
