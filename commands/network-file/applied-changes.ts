// Sends network files to be applied, and follows how far the controller is, also if the user or the connection interrupts it.
import { setTimeout } from 'node:timers/promises'
import { CommandError, EXIT, toExitCode } from '../foundation/exit-codes.ts'
import { delayInterrupt } from '../foundation/interrupts.ts'
import { DUPLICATE_REASON, RequestError } from '../foundation/request-error.ts'
import type { CommandRun } from '../framework/connected.ts'
import { withProgress } from '../terminal/progress.ts'
import type { SectionSource } from './sections.ts'

/** The numbers of changes after a transaction. */
interface ApplyProgress {
  readonly creates: number
  readonly changes: number
  readonly deletes: number
  readonly total: number
  readonly failure: {
    readonly status: number
    readonly code: string
    readonly message: string
    readonly field?: string
    readonly reason?: string
    readonly value?: string
  } | null
}

export const NO_CHANGES: ApplyProgress = { creates: 0, changes: 0, deletes: 0, total: 0, failure: null }

const CONTINUE = 'run the command again to continue'
const STOP_RETRY_MS = 200
// The first ones may reach the controller before the file does.
const MAX_STOP_REQUESTS = 10

/**
 * Applies files as the plan of the digest. Ctrl-C ends it after the transaction that is under way, a second one ends the process.
 * If the controller that applies them cannot be asked to stop, because a load balancer sends that to another one, the end of the
 * connection has it stop.
 * @throws CommandError with exit code 130 if the user ended it, with what is made and what is left
 */
export async function sendSections(
  { client, flags, notice }: CommandRun,
  source: SectionSource,
  { isPruning, digest }: { readonly isPruning: boolean; readonly digest: string },
): Promise<ApplyProgress> {
  let last = NO_CHANGES
  let hasEnded = false
  let isAbandoned = false
  const path = `/controller/network/apply?prune=${isPruning}&digest=${digest}`
  const changes = async function* () {
    for await (const item of client.items(path, undefined, { method: 'POST', body: source.sections })) {
      const before = countOf(last)
      last = item as ApplyProgress
      for (let count = before; count < countOf(last); count++) yield count
    }
  }
  const send = async () => {
    for await (const _ of withProgress(changes(), 'changes', flags.output, async () => last.total));
  }
  const stop = async () => {
    for (let count = 0; !hasEnded && count < MAX_STOP_REQUESTS; count++) {
      const result = await requestStop(client, digest)
      if (result === 'stopping') return
      if (result === 'failed') break
      await setTimeout(STOP_RETRY_MS)
    }
    if (hasEnded) return
    isAbandoned = true
    await client.close()
  }
  const warn = () => `stopping after the transaction under way (${describeProgress(last)}): Ctrl-C again ends at once`
  try {
    await delayInterrupt(warn, send, () => void stop())
  } catch (error) {
    if (isAbandoned) throw makeInterruption(describeKnown(last))
    const located = source.locate(error)
    if (countOf(last) > 0) notice(`at least ${describeProgress(last)}: ${CONTINUE}`)
    throw located
  } finally {
    hasEnded = true
  }
  if (last.failure) throw makeFailure(client.target, source, last, last.failure)
  if (countOf(last) < last.total) throw makeInterruption(describeProgress(last))
  return last
}

/** Asks the controller to end what it applies. */
async function requestStop(client: CommandRun['client'], digest: string): Promise<'stopping' | 'unknown' | 'failed'> {
  try {
    await client.call('POST', `/controller/network/apply/stop?digest=${digest}`)
    return 'stopping'
  } catch (error) {
    return error instanceof RequestError && error.status === 404 ? 'unknown' : 'failed'
  }
}

function makeInterruption(progress: string): CommandError {
  return new CommandError(EXIT.interrupted, 'INTERRUPTED', `interrupted: ${progress}`, { hint: CONTINUE })
}

function countOf({ creates, changes, deletes }: ApplyProgress): number {
  return creates + changes + deletes
}

function describeProgress(progress: ApplyProgress): string {
  const { total } = progress
  const count = countOf(progress)
  return total === 0 ? 'no change is made' : `${count} of ${total} changes are made, ${total - count} are left`
}

/** Describes the progress of a controller whose last transactions are not known. */
function describeKnown(progress: ApplyProgress): string {
  const count = countOf(progress)
  return count === 0 ? 'some changes may be made' : `at least ${count} of ${progress.total} changes are made`
}

function makeFailure(
  target: string,
  source: SectionSource,
  progress: ApplyProgress,
  failure: NonNullable<ApplyProgress['failure']>,
): CommandError {
  const { status, code, message, reason } = failure
  const mistake = source.describeMistake(failure)
  const cause = mistake ?? `${target}: ${reason ?? message}`
  const exitCode = toExitCode({ status, causeCode: undefined, isDuplicate: reason === DUPLICATE_REASON })
  const hint = mistake === undefined ? '' : 'correct the file, then '
  return new CommandError(exitCode, code, `${cause}; ${describeProgress(progress)}`, { hint: `${hint}${CONTINUE}` })
}
