// A second controller that follows that of a test by its commits alone: at the end both have the same rows, and the same in memory.
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Controller } from '../../src/controller/controller.ts'
import { openController } from '../../src/controller/open-controller.ts'
import type { OpenOptions } from '../../src/controller/open-options.ts'
import { getDataPaths } from '../../src/settings/data-directory.ts'
import type { CommitLog, LoggedCommit } from '../../src/storage/commit-log.ts'
import type { LocalLog } from '../../src/storage/local-log.ts'
import { openForReading } from '../../src/storage/sqlite/connection.ts'
import { digestRows, listDifferentTables, type RowDigests } from '../../src/storage/sqlite/row-digest.ts'
import type { Store } from '../../src/storage/store.ts'
import { type Projection, Projections } from '../../src/storage/transactions/projection.ts'
import { describePrivateState } from './private-state.ts'

/** The projections of each store. */
const started = new WeakMap<Projections, readonly Projection[]>()
const { start } = Projections.prototype
Projections.prototype.start = function (...projections) {
  started.set(this, [...(started.get(this) ?? []), ...projections])
  return start.apply(this, [...projections])
}

/** The log as a controller sees it that only follows. */
class FollowedLog implements CommitLog {
  readonly node = 'shadow'
  readonly isDeciding = true
  readonly needsRows = true
  #commits: string[] = []

  add(commit: LoggedCommit): void {
    this.#commits.push(JSON.stringify(commit))
  }

  async acquire(): Promise<never> {
    throw new Error('a controller that only follows was asked to commit')
  }

  async readAfter(): Promise<readonly LoggedCommit[]> {
    return this.#commits.splice(0).map((commit) => JSON.parse(commit) as LoggedCommit)
  }
}

export class Shadow {
  readonly #directory: string
  readonly #controller: Controller
  readonly #followed: Controller
  readonly #unfollow: () => void

  private constructor(directory: string, controller: Controller, followed: Controller, unfollow: () => void) {
    this.#directory = directory
    this.#controller = controller
    this.#followed = followed
    this.#unfollow = unfollow
  }

  /** Opens the shadow of a controller that is at rest, with the options that this one was opened with. */
  static async open(followed: Controller, options: OpenOptions, log: LocalLog): Promise<Shadow> {
    const directory = join(mkdtempSync(join(tmpdir(), 'controller-shadow-')), 'data')
    const commitLog = new FollowedLog()
    const unfollow = log.follow((commit) => commitLog.add(commit))
    // No commit can come between, because nothing is awaited.
    cpSync(options.directory, directory, { recursive: true, filter: (path) => !path.endsWith('-shm') })
    const controller = await openController({ ...options, directory, commitLog })
    return new Shadow(directory, controller, followed, unfollow)
  }

  /** Expects no difference from the controller, which is closed; closes the shadow. */
  async compareAndClose(): Promise<void> {
    this.#unfollow()
    const { store } = this.#controller
    try {
      await store.catchUp()
      const differentTables = listDifferentTables(digestFile(this.#followed.directory), digestFile(this.#directory))
      if (differentTables.length > 0) throw new Error(`a follower has other rows of ${differentTables.join(', ')}`)
      const differences = await listDifferencesInMemory(store, this.#followed.store)
      if (differences.length > 0) throw new Error(`what a follower has in memory differs: ${differences.join('; ')}`)
    } finally {
      await this.#controller.close()
      rmSync(this.#directory, { recursive: true, force: true })
    }
  }
}

/**
 * Compares each projection that holds rows in another form with that of the followed store, or with the rows if it can. A test may
 * have written rows past the projections: then both lack them.
 */
export async function listDifferencesInMemory(store: Store, followed: Store): Promise<string[]> {
  const compared = await store.projections.findDifferences()
  const differences = compared.map(({ projection, description }) => `${projection}: ${description}`)
  const originals = new Map(started.get(followed.projections)?.map((projection) => [projection.name, projection]))
  for (const projection of started.get(store.projections) ?? []) {
    const original = originals.get(projection.name)
    if (projection.kind !== 'derived rows' || projection.findDifferences || !original) continue
    const [own, other] = [describePrivateState(projection), describePrivateState(original)]
    if (own !== other) differences.push(`${projection.name} is ${own} in place of ${other}`)
  }
  return differences
}

/** The digests of the tables of a data directory. */
export function digestFile(directory: string): RowDigests {
  const connection = openForReading(getDataPaths(directory).database)
  try {
    return digestRows(connection)
  } finally {
    connection.close()
  }
}
