// Projections: state in memory that is derived from commits. Each follows every commit in a stated order, or is rebuilt from
// rows.
import type { Kysely } from 'kysely'
import type { Change } from './changes.ts'
import type { Database } from './database.ts'

/** State in memory that follows commits. Nothing reads it except through the interface of its class. */
export interface Projection {
  /** Its name in logs. */
  readonly name: string
  /**
   * Replaces the whole state with that of the rows. It awaits only its queries, so that no request runs in between, and
   * replaces the state only after it has read everything.
   */
  rebuild(db: Kysely<Database>): Promise<void>
  /**
   * Follows a commit.
   * @param changes in the order in which the transactions made them
   * @param tables those that the statements of the commit wrote to
   */
  apply(changes: readonly Change[], tables: ReadonlySet<string>): void
  /**
   * Compares the state with the rows: one sentence for each difference. It awaits only its queries, as `rebuild` does. Caches
   * that hold what was requested lately have no such method.
   */
  findDifferences?(db: Kysely<Database>): Promise<readonly string[]>
}

/** A difference between the state of a projection and the rows. */
export interface ProjectionDifference {
  readonly projection: string
  readonly description: string
}

/** A projection could neither follow a commit nor be rebuilt: memory no longer holds what the rows hold. */
export class ProjectionError extends Error {
  override readonly name = 'ProjectionError'

  constructor(projection: string, cause: unknown) {
    super(`the projection ${projection} could not be rebuilt from the database`, { cause })
  }
}

export interface ProjectionsOptions {
  /** The database that projections are rebuilt from. */
  readonly db: Kysely<Database>
  /** The store's own projections, which follow after all others. */
  readonly own: readonly Projection[]
  /** Receives the error of a projection that threw and is rebuilt. */
  reportError(error: unknown): void
  /** Stops the process. Called if a projection cannot be rebuilt, because stale rights must not be served. */
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
   * Builds projections from rows; from then on they follow every commit, in this order and before those of the store.
   * No transaction may run meanwhile.
   */
  async start(...projections: readonly Projection[]): Promise<void> {
    for (const projection of projections) await projection.rebuild(this.#options.db)
    const earlier = this.#ordered.filter((projection) => !this.#options.own.includes(projection))
    this.#ordered = [...earlier, ...projections, ...this.#options.own]
  }

  /**
   * Applies a commit to every projection, also if one before it throws.
   * @returns undefined, or a promise that settles once those that threw are rebuilt
   * @throws ProjectionError asynchronously, if one cannot be rebuilt
   */
  apply(changes: readonly Change[], tables: ReadonlySet<string>): Promise<void> | undefined {
    const broken: Projection[] = []
    for (const projection of this.#ordered) {
      try {
        projection.apply(changes, tables)
      } catch (error) {
        this.#options.reportError(error)
        broken.push(projection)
      }
    }
    return broken.length === 0 ? undefined : this.#rebuild(broken)
  }

  /** Compares every projection with the rows. */
  async findDifferences(): Promise<ProjectionDifference[]> {
    const differences: ProjectionDifference[] = []
    for (const projection of this.#ordered) {
      for (const description of (await projection.findDifferences?.(this.#options.db)) ?? [])
        differences.push({ projection: projection.name, description })
    }
    return differences
  }

  /** Rebuilds one projection from rows. @throws ProjectionError if that fails; then the process stops */
  async rebuild(name: string): Promise<void> {
    await this.#rebuild(this.#ordered.filter((projection) => projection.name === name))
  }

  async #rebuild(broken: readonly Projection[]): Promise<void> {
    for (const projection of broken) {
      try {
        await projection.rebuild(this.#options.db)
      } catch (error) {
        this.#failure ??= new ProjectionError(projection.name, error)
      }
    }
    if (!this.#failure) return
    this.#options.fail(this.#failure)
    throw this.#failure
  }
}
