// Sends the request of a task, or one request for each of several records.
import type { ApiResponse } from '../client/client.ts'
import { CommandError, EXIT, makeUsageError, toExitCode } from '../foundation/exit-codes.ts'
import { delayInterrupt } from '../foundation/interrupts.ts'
import { RequestError } from '../foundation/request-error.ts'
import type { CommandRun } from '../framework/connected.ts'
import { withProgress } from '../terminal/progress.ts'
import { escapeLines } from '../terminal/text.ts'
import { listPathArguments } from './arguments.ts'
import { confirmRequests, confirmSelection } from './confirmations.ts'
import { buildOutcome, type RequestOutcome } from './present.ts'
import type { CommandTask, PreparedRequest } from './task.ts'

/** Sends a request of the task. @throws RequestError if the controller rejects it */
export function sendRequest(
  { operation, isText }: CommandTask,
  { path, body }: PreparedRequest,
  { client, flags }: CommandRun,
): Promise<ApiResponse> {
  const headers: Record<string, string> = isText ? { 'content-type': operation.body?.contentTypes[0] ?? '' } : {}
  return client.call(operation.method, path, body, { ...headers, ...(flags['dry-run'] ? DRY_RUN_HEADERS : {}) })
}

const DRY_RUN_HEADERS = { 'controller-dry-run': 'true' } as const

/** @throws CommandError with exit code 2 if a flag works for a single record only */
export function assertBulkFlags({ flags }: CommandRun): void {
  if (flags['jwt-file'] === undefined && flags.qr !== true) return
  throw makeUsageError('--jwt-file and --qr are for one record', { hint: '-o jwt prints the JWTs of several' })
}

/**
 * Asks, sends the requests one after the other, and prints what they did. A record that the controller refuses does not stop
 * the others. What was done before any other failure, or before Ctrl-C, is printed, too.
 * @returns the exit code of the first failure; undefined if there is none
 */
export async function sendAll(
  task: CommandTask,
  requests: readonly PreparedRequest[],
  run: CommandRun,
): Promise<number | undefined> {
  // Names that are typed are meant; a selection may be larger than expected.
  if (run.words.length === 0) await confirmSelection(task, requests, run)
  await confirmRequests(task, requests, run)
  let exitCode: number | undefined
  let isInterrupted = false
  const outcomes: RequestOutcome[] = []
  const plural = listPathArguments(task.operation, task.api)[0]?.resource?.plural ?? ''
  const describeProgress = () =>
    `${outcomes.length} of ${requests.length} requests ${outcomes.length === 1 ? 'is' : 'are'} done`
  const warning = () => `stopping after the request under way (${describeProgress()}): Ctrl-C again ends at once`
  const collect = async () => {
    for await (const outcome of withProgress(sendEach(), plural, 'table', async () => requests.length)) {
      outcomes.push(outcome as RequestOutcome)
    }
  }
  const printOutcomes = async () => {
    if (outcomes.length > 0) await printAll(outcomes, plural, run)
  }
  try {
    await delayInterrupt(warning, collect, () => {
      isInterrupted = true
    })
  } catch (error) {
    // The error that ended the requests is the one to report, even if the results cannot be printed.
    await printOutcomes().catch(() => undefined)
    throw error
  }
  await printOutcomes()
  return exitCode

  async function* sendEach(): AsyncIterable<RequestOutcome> {
    for (const request of requests) {
      if (isInterrupted) throw new CommandError(EXIT.interrupted, 'INTERRUPTED', `interrupted: ${describeProgress()}`)
      try {
        yield await buildOutcome(task, request, await sendRequest(task, request, run), run)
      } catch (error) {
        if (!isRefusal(error)) {
          run.notice(`Stopped at ${request.label}: ${describeProgress()}.`)
          throw error
        }
        exitCode ??= toExitCode(error)
        run.notice(`${request.label}: ${error.explanation}`)
      }
    }
  }
}

/** Whether the controller refuses this record, so that others may succeed. */
function isRefusal(error: unknown): error is RequestError {
  return error instanceof RequestError && [400, 404, 409].includes(error.status)
}

async function printAll(outcomes: readonly RequestOutcome[], plural: string, run: CommandRun): Promise<void> {
  const { output } = run.flags
  const sentences = outcomes.flatMap(({ sentence }) => (sentence === undefined ? [] : [sentence]))
  if ((output === undefined || output === 'table') && outcomes.every(({ isSentence }) => isSentence)) {
    return run.print({ kind: 'text', text: escapeLines(sentences.join('\n')) })
  }
  for (const sentence of sentences) run.notice(sentence)
  const items = outcomes.map(({ record }) => record)
  await run.print({ kind: 'list', name: plural, items, columns: outcomes[0]?.columns ?? [] })
}
