// Projections: what follows every commit, in one order. Each is of one of four kinds, which say what it holds, and what it does
// if it could not follow.
import type { Kysely } from 'kysely'
import type { Database } from '../database.ts'
import type { Commit } from './changes.ts'

interface Follower {
  /** Its name in logs. */
  readonly name: string
  /** Follows a commit, by what the commit holds alone: a process that did not make the commit follows it alike. */
  apply(commit: Commit): void
}

/** Rows in another form, complete at every moment. Nothing reads it except through the interface of its class. */
export interface DerivedRows extends Follower {
  readonly kind: 'derived rows'
  /**
   * Replaces the whole state with that of the rows. It awaits only its queries, so that no request runs in between, and
   * replaces the state only after it has read everything.
   */
  rebuild(db: Kysely<Database>): Promise<void>
  /** Compares the state with the rows: one sentence for each difference. It awaits only its queries, as `rebuild` does. */
  findDifferences?(db: Kysely<Database>): Promise<readonly string[]>
}

/** Live state exists beyond rows, as far as rows permit it: for example a connection of a router that has a record. */
export interface LiveState extends Follower {
  readonly kind: 'live state'
  /** Ends everything that the rows do not permit. It awaits only its queries. */
  reconcile(db: Kysely<Database>): Promise<void>
}

/** A cache holds what was read or computed lately, and can be again. A commit removes what it changes. */
export interface Cache extends Follower {
  readonly kind: 'cache'
  clear(): void
}

/** Passes on to others what follows from commits, after memory has followed them. */
export interface SideEffect extends Follower {
  readonly kind: 'side effect'
  /** Passes on everything again, as the rows say it. It awaits only its queries. */
  restart(db: Kysely<Database>): Promise<void>
}

export type Projection = DerivedRows | LiveState | Cache | SideEffect

/** The order in which the kinds follow a commit: rights and sessions first, and others learn of it last. */
const ORDER: readonly Projection['kind'][] = ['derived rows', 'live state', 'cache', 'side effect']

/** Makes a projection right again that could not follow a commit, and right for the first time at the start. */
async function recover(projection: Projection, db: Kysely<Database>): Promise<void> {
  switch (projection.kind) {
    case 'derived rows':
      return projection.rebuild(db)
    case 'live state':
      return projection.reconcile(db)
    case 'cache':
      return projection.clear()
    case 'side effect':
      return projection.restart(db)
  }
}

/** A difference between the state of a projection and the rows. */
export interface ProjectionDifference {
  readonly projection: string
  readonly description: string
}

/** A projection could neither follow a commit nor recover: memory no longer holds what the rows hold. */
export class ProjectionError extends Error {
  override readonly name = 'ProjectionError'

  constructor(projection: string, cause: unknown) {
    super(`the projection ${projection} could not be rebuilt from the database`, { cause })
  }
}

export interface ProjectionsOptions {
  /** The database that projections are rebuilt from. */
  readonly db: Kysely<Database>
  /** The store's own projections. */
  readonly own: readonly Projection[]
  /** Receives the error of a projection that threw and recovers. */
  reportError(error: unknown): void
  /** Stops the process. Called if a projection cannot recover, because stale rights must not be served. */
  fail(error: ProjectionError): void
}

/** All projections of a store, in the order in which they follow commits. */
export class Projections {
  readonly #options: ProjectionsOptions
  #ordered: readonly Projection[]
  #failure: ProjectionError | undefined

  constructor(options: ProjectionsOptions) {
    this.#options = options
    this.#ordered = options.own
  }

  /** The names, in order. */
  get names(): string[] {
    return this.#ordered.map(({ name }) => name)
  }

  /** The error that stops the process; undefined while every projection matches the rows. */
  get failure(): ProjectionError | undefined {
    return this.#failure
  }

  /**
   * Starts projections; from then on they follow every commit, kind by kind, and those of one kind in the order in which they were
   * started. No transaction may run meanwhile.
   */
  async start(...projections: readonly Projection[]): Promise<void> {
    for (const projection of projections) await recover(projection, this.#options.db)
    const all = [...this.#ordered, ...projections]
    this.#ordered = ORDER.flatMap((kind) => all.filter((projection) => projection.kind === kind))
  }

  /**
   * Applies a commit to every projection, also if one before it throws.
   * @returns undefined, or a promise that settles once those that threw are right again
   * @throws ProjectionError asynchronously, if one cannot recover
   */
  apply(commit: Commit): Promise<void> | undefined {
    const broken: Projection[] = []
    for (const projection of this.#ordered) {
      try {
        projection.apply(commit)
      } catch (error) {
        this.#options.reportError(error)
        broken.push(projection)
      }
    }
    return broken.length === 0 ? undefined : this.#recover(broken)
  }

  /** Compares the projections that are rows in another form with the rows. */
  async findDifferences(): Promise<ProjectionDifference[]> {
    const differences: ProjectionDifference[] = []
    for (const projection of this.#ordered) {
      if (projection.kind !== 'derived rows' || !projection.findDifferences) continue
      for (const description of await projection.findDifferences(this.#options.db))
        differences.push({ projection: projection.name, description })
    }
    return differences
  }

  /** Rebuilds one projection from rows. @throws ProjectionError if that fails; then the process stops */
  async rebuild(name: string): Promise<void> {
    await this.#recover(this.#ordered.filter((projection) => projection.name === name))
  }

  async #recover(broken: readonly Projection[]): Promise<void> {
    for (const projection of broken) {
      try {
        await recover(projection, this.#options.db)
      } catch (error) {
        this.#failure ??= new ProjectionError(projection.name, error)
      }
    }
    if (!this.#failure) return
    this.#options.fail(this.#failure)
    throw this.#failure
  }
}
