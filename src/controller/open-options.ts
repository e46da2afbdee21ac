// The options with which a controller is opened.
import type { LiveSources } from '../access/live-state.ts'
import type { PasswordCost } from '../authentication/credentials/password-hasher.ts'
import type { Clock } from '../foundation/clock.ts'
import type { Log } from '../foundation/log.ts'
import type { Config } from '../settings/settings.ts'
import type { CommitLog } from '../storage/commit-log.ts'
import type { Migration } from '../storage/migrate.ts'

export interface OpenOptions {
  /** Sources of live state, for tests. Defaults to the routers that are connected. */
  readonly live?: LiveSources
  /** Stops the process, because its memory no longer matches the commits. By default, an uncaught exception stops it. */
  readonly fail?: (error: Error) => void
  /** The log in which commits become durable, for tests. Defaults to what the settings name. */
  readonly commitLog?: CommitLog
  readonly directory: string
  readonly config: Config
  readonly clock: Clock
  readonly log: Log
  /** Whether the time is that of the database that controllers share; false in tests whose clocks stand still. Defaults to true. */
  readonly followsDatabaseTime?: boolean
  /** Whether it may differ from the other controllers of the network in settings that are the same on all. */
  readonly hasOtherSettings?: boolean
  /** Whether it waits until controllers of older releases have stopped, if it needs a newer schema than they know; otherwise it is refused. */
  readonly waitsForOlder?: boolean
  /** Whether rows that the log of the cluster does not lead on from are replaced by those of the log, which is the default. */
  readonly isRebuilt?: boolean
  /** The migrations of the store, for tests. Defaults to the migrations of this program. */
  readonly migrations?: readonly Migration[]
  /** The cost of password hashes, for tests. Defaults to the recommended cost. */
  readonly passwordCost?: PasswordCost
}
