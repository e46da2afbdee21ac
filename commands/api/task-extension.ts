// The interface by which a generated command does more than its operation.
import type { Interfaces } from '@oclif/core'
import type { CommandRun } from '../framework/connected.ts'
import type { OutputRecord } from '../terminal/cells.ts'

export interface TaskExtension {
  readonly flags: Interfaces.FlagInput
  /** The run with the flags that follow from those that are set. @throws CommandError if they do not fit together */
  complete(run: CommandRun): CommandRun
  /** Called before the request. Returns what follows it; undefined if nothing does. */
  prepare(run: CommandRun): Promise<FollowUp | undefined>
}

export interface FollowUp {
  /** Called with the record after the change. */
  finish(record: OutputRecord): void
  /** Called in any case. */
  release(): void
}
