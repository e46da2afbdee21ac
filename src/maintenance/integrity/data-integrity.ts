// Checks, and repairs, the data of a running controller in the background: one run at a time, whose results can be read meanwhile.
import { statSync } from 'node:fs'
import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { Clock, Instant } from '../../foundation/clock.ts'
import { errors } from '../../foundation/errors.ts'
import type { Log } from '../../foundation/log.ts'
import type { Store } from '../../storage/store.ts'
import type { Context } from '../../storage/transactions/context.ts'
import type { Projections } from '../../storage/transactions/projection.ts'
import { findDefectsInTurns } from './check-database.ts'
import type { CheckRequest } from './check-thread.ts'
import type { CheckedFiles, Defect } from './defects.ts'
import type { Repairs } from './repairs.ts'

/** A defect that a run found, and whether it was repaired. */
export interface FoundDefect {
  readonly description: string
  readonly fixed: boolean
}

/** The state of the last run, or of the one that runs. */
export interface IntegrityReport {
  readonly startTime: Instant | undefined
  readonly endTime: Instant | undefined
  /** The reason why the run itself failed. */
  readonly error: string | undefined
  readonly fixingErrors: boolean
  readonly inProgress: boolean
  readonly tooManyErrors: boolean
  readonly results: readonly FoundDefect[]
}

export interface DataIntegrityOptions {
  readonly files: CheckedFiles
  readonly store: Store
  readonly clock: Clock
  readonly log: Log
  readonly repairs: Repairs
  /** Makes a backup, before a run that repairs. */
  backUp(): Promise<unknown>
}

const MAX_RESULTS = 1000
const RETRY_AFTER_SECONDS = 10
// Each check of so small a database takes a few milliseconds, less than the start of a thread.
const MAX_SMALL_BYTES = 2 * 1024 * 1024

// Tests run the sources, installations the compiled files.
const THREAD = new URL(`./check-thread${extname(import.meta.url)}`, import.meta.url)

const NO_RUN: IntegrityReport = {
  startTime: undefined,
  endTime: undefined,
  error: undefined,
  fixingErrors: false,
  inProgress: false,
  tooManyErrors: false,
  results: [],
}

export class DataIntegrity {
  readonly #options: DataIntegrityOptions
  #report = NO_RUN
  #run: Promise<void> | undefined
  #worker: Worker | undefined

  constructor(options: DataIntegrityOptions) {
    this.#options = options
  }

  get report(): IntegrityReport {
    return this.#report
  }

  /**
   * Starts a run in the background.
   * @param context of the caller who repairs: each repair is audited, and requires its rights
   * @throws RATE_LIMITED while another run is not finished
   */
  start(context: Context, { isRepairing }: { readonly isRepairing: boolean }): void {
    if (this.#run) throw errors.RATE_LIMITED(undefined, { retryAfterSeconds: RETRY_AFTER_SECONDS })
    const { clock, log } = this.#options
    this.#report = { ...NO_RUN, startTime: clock.now(), fixingErrors: isRepairing, inProgress: true }
    this.#run = this.#execute(context, isRepairing)
      .catch((error: Error) => {
        log.error({ err: error }, 'the check of the data could not be completed')
        this.#update({ error: error.message })
      })
      .finally(() => {
        this.#update({ endTime: clock.now(), inProgress: false })
        this.#run = undefined
      })
  }

  /** Settles once no run is in progress. */
  async waitUntilIdle(): Promise<void> {
    await this.#run
  }

  /** Ends the run that is in progress. */
  async close(): Promise<void> {
    await this.#worker?.terminate()
    await this.#run
  }

  async #execute(context: Context, isRepairing: boolean): Promise<void> {
    if (isRepairing) await this.#options.backUp()
    const defects = await this.#findDefects()
    for (const defect of defects) {
      if (this.#report.results.length === MAX_RESULTS) {
        this.#update({ tooManyErrors: true })
        return
      }
      const fixed = isRepairing && (await this.#options.repairs.attempt(context, defect))
      this.#update({ results: [...this.#report.results, { description: defect.description, fixed }] })
    }
  }

  async #findDefects(): Promise<Defect[]> {
    const { store, files } = this.#options
    // One more than is kept shows that there are more.
    const isSmall = statSync(files.database).size <= MAX_SMALL_BYTES
    const defects = isSmall
      ? await findDefectsInTurns(files, MAX_RESULTS + 1)
      : await this.#checkInThread(MAX_RESULTS + 1)
    return [...defects, ...(await findProjectionDefects(store.projections))]
  }

  #checkInThread(maxDefects: number): Promise<Defect[]> {
    const workerData: CheckRequest = { ...this.#options.files, maxDefects }
    return new Promise((resolve, reject) => {
      const worker = new Worker(THREAD, { workerData })
      this.#worker = worker
      const defects: Defect[] = []
      worker.on('message', (batch: Defect[]) => defects.push(...batch))
      worker.on('error', reject)
      worker.on('exit', (code) => {
        this.#worker = undefined
        if (code === 0) resolve(defects)
        else reject(new Error('the check was interrupted'))
      })
    })
  }

  #update(changes: Partial<IntegrityReport>): void {
    this.#report = { ...this.#report, ...changes }
  }
}

async function findProjectionDefects(projections: Projections): Promise<Defect[]> {
  const differences = await projections.findDifferences()
  return differences.map(({ projection, description }) => ({
    description: `the state in memory of ${projection} differs from the rows: ${description}`,
    repair: { kind: 'rebuild-projection', projection },
  }))
}
