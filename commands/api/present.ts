// Prints the response of an operation: a record, or a sentence about the change.
import type { OperationDescription, ResourceDescription } from '../../src/client/api-description.ts'
import { writePrivateFile } from '../../src/pki/files.ts'
import type { ApiResponse } from '../client/client.ts'
import type { CommandRun } from '../connected.ts'
import { toNoun } from '../names.ts'
import { splitPath, toCommandId } from '../naming.ts'
import type { Entity } from '../output/cells.ts'
import { findJwt, noJwtError, type Result } from '../output/formats.ts'
import type { CommandTask, PreparedRequest } from './task.ts'

/** Prints the response; for a change without a response body, the record is fetched and printed. */
export async function printResponse(
  task: CommandTask,
  prepared: PreparedRequest,
  response: ApiResponse,
  run: CommandRun,
): Promise<void> {
  const { returns } = task.operation
  switch (returns.kind) {
    case 'raw':
      return run.print({ kind: 'text', text: response.reply.text })
    case 'created':
      return printCreated(task, returns.resource, (response.data as { id: string }).id, prepared, run)
    case 'empty':
      return printDone(task, prepared, run)
    default:
      return run.print({ kind: 'record', record: (response.data ?? {}) as Entity })
  }
}

async function printCreated(
  task: CommandTask,
  plural: string,
  id: string,
  { defaults }: PreparedRequest,
  run: CommandRun,
): Promise<void> {
  const resource = task.api.resources[plural]
  const record = resource ? await fetchRecord(task, resource, id, run) : undefined
  run.notice(`Created ${toNoun(resource?.name ?? plural)} ${String(record?.name ?? id)}${toDefaultsText(defaults)}.`)
  await printRecord(task, resource, record ?? { id }, run)
}

/** The defaults that were filled in, in brackets. */
function toDefaultsText(defaults: readonly string[]): string {
  return defaults.length === 0 ? '' : ` (${defaults.join(', ')})`
}

/** Prints the result of a response without content: the record after the change, or a sentence. */
async function printDone(task: CommandTask, { ids, defaults }: PreparedRequest, run: CommandRun): Promise<void> {
  const { operation, api } = task
  const [head = '', parameter = ''] = splitPath(operation.path)
  const resource = api.resources[head]
  const id = parameter.startsWith(':') ? ids[parameter.slice(1)] : undefined
  const name = Object.values(run.args).find((word) => word !== undefined)
  const sentence = describeOutcome(operation, task, resource, name) + toDefaultsText(defaults)
  const isDeleted = operation.method === 'DELETE' && splitPath(operation.path).length === 2
  const record = resource && id !== undefined && !isDeleted ? await fetchRecord(task, resource, id, run) : undefined
  if (!record) {
    const facts = { ...(id === undefined ? {} : { id }), ...(isDeleted ? { deleted: true } : { done: operation.id }) }
    return run.print({ kind: 'done', sentence: `${sentence}.`, facts })
  }
  run.notice(`${sentence}.`)
  await printRecord(task, resource, record, run)
}

function describeOutcome(
  operation: OperationDescription,
  { api }: CommandTask,
  resource: ResourceDescription | undefined,
  name: string | undefined,
): string {
  const [noun = '', verb = ''] = toCommandId(operation, api).split(':')
  const subject = `${toNoun(resource?.name ?? noun)}${name === undefined ? '' : ` ${name}`}`
  return isVerb(verb) ? `${toParticiple(verb)} ${subject}` : `Done: ${toNoun(verb)} of ${subject}`
}

const VERBS = new Set([
  'create',
  'replace',
  'update',
  'delete',
  'enable',
  'disable',
  'refresh',
  'verify',
  're-enroll',
  'trace',
])

function isVerb(word: string): boolean {
  return VERBS.has(word)
}

/** `verify` → `Verified` */
function toParticiple(verb: string): string {
  const past = verb.endsWith('e') ? `${verb}d` : verb.endsWith('y') ? `${verb.slice(0, -1)}ied` : `${verb}ed`
  return past.charAt(0).toUpperCase() + past.slice(1)
}

/** The current record; undefined if the API has no operation that reads a single record of the resource. */
async function fetchRecord(
  { api }: CommandTask,
  { plural }: ResourceDescription,
  id: string,
  { client }: CommandRun,
): Promise<Entity | undefined> {
  const path = `/${plural}/:id`
  if (!api.operations.some((operation) => operation.method === 'GET' && operation.path === path)) return undefined
  const { data } = await client.call('GET', path.replace(':id', encodeURIComponent(id)))
  return data as Entity
}

async function printRecord(
  { carriesJwt }: CommandTask,
  resource: ResourceDescription | undefined,
  record: Entity,
  run: CommandRun,
): Promise<void> {
  const { flags, notice } = run
  const result: Result = { kind: 'record', record, ...(resource ? { columns: resource.columns } : {}) }
  if (!carriesJwt) return run.print(result)
  const file = flags['jwt-file'] as string | undefined
  if (file === undefined && !flags.qr) return run.print(result)
  const jwt = findJwt(record)
  if (jwt === undefined) throw noJwtError()
  if (flags.qr) {
    const { renderQrCode } = await import('../output/qr.ts')
    process.stderr.write(`${(await renderQrCode(jwt)).join('\n')}\n`)
  }
  if (file === '-') return run.print({ kind: 'text', text: jwt })
  if (file !== undefined) {
    writePrivateFile(file, `${jwt}\n`)
    notice(`Wrote the enrollment JWT to ${file}.`)
  }
  await run.print(result)
}
