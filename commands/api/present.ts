// Prints the response of an operation: a record, or a sentence about the change.
import type { ApiDescription, OperationDescription, ResourceDescription } from '../../src/client/api-description.ts'
import type { ApiResponse } from '../client/client.ts'
import { readJwtSubject } from '../client/external-jwt.ts'
import { toNoun } from '../client/names.ts'
import { findFileTarget, ReservedFile } from '../client/reserved-file.ts'
import { toCommandLine } from '../foundation/command-lines.ts'
import { CommandError } from '../foundation/exit-codes.ts'
import { splitPath } from '../foundation/naming.ts'
import type { CommandRun } from '../framework/connected.ts'
import type { OutputRecord } from '../terminal/cells.ts'
import { findJwt, noJwtError } from '../terminal/formats.ts'
import { confirmReplacement } from '../terminal/replacement.ts'
import { OUTPUT_LOST } from '../terminal/stdout.ts'
import { getCredentials, omitCredentials } from './credentials.ts'
import { describeToken } from './enrollment-request.ts'
import { fetchRequestImpact, renderImpact } from './impact.ts'
import { getColumns } from './listing.ts'
import { addReferenceNames, isForPeople } from './reference-names.ts'
import type { CommandTask, PreparedRequest } from './task.ts'

/** The outcome of a request. */
export interface RequestOutcome {
  /** A sentence about the change; undefined if nothing was changed. */
  readonly sentence?: string
  /** The record after the change; for one that is gone, the facts about it. */
  readonly record: OutputRecord
  /** The columns of the record in a table; undefined if it is shown in full, or not at all. */
  readonly columns?: readonly string[]
  /** Whether the sentence is the whole result. */
  readonly isSentence?: boolean
  /** Text that is printed unchanged. */
  readonly text?: string
}

/** Reads what a response says; for a change without a response body, the record is fetched. */
export async function buildOutcome(
  task: CommandTask,
  request: PreparedRequest,
  response: ApiResponse,
  run: CommandRun,
): Promise<RequestOutcome> {
  const { operation } = task
  const { returns } = operation
  if (run.flags['dry-run'] === true) return buildDryRun(task, request, run)
  if (returns.kind === 'raw') return { record: {}, text: response.reply.text }
  if (returns.kind === 'created') return buildCreated(task, returns.resource, response, request, run)
  if (returns.kind === 'empty' || returnsReference(operation)) return buildDone(task, request, run)
  const record = omitCredentials((response.data ?? {}) as OutputRecord, getCredentials(operation, task.api))
  if (operation.method !== 'GET' || !isForPeople(run)) return { record }
  const [head = ''] = splitPath(operation.path)
  const [namedRecord = record] = await addReferenceNames([record], head, task.api, run.client)
  return { record: namedRecord }
}

/** The effects of the change, which is not made: the record is as it was before. */
async function buildDryRun(task: CommandTask, request: PreparedRequest, run: CommandRun): Promise<RequestOutcome> {
  const { commandId, operation, api } = task
  const [noun = '', verb = ''] = commandId.split(':')
  const body = (request.body ?? {}) as { readonly name?: unknown }
  const label = request.label === '' && typeof body.name === 'string' ? body.name : request.label
  const impact = await fetchRequestImpact(run.client, operation, request, api)
  const lines = impact ? renderImpact(impact) : []
  const removals = request.removed.length === 0 ? [] : [`It would remove: ${request.removed.join(', ')}.`]
  const sentence = [`Would ${verb} ${toNoun(noun)} ${label}. Nothing was changed.`, ...removals, ...lines].join('\n')
  const record = { dryRun: true, operation: operation.id, ...request.ids, impact: impact ?? null }
  return { sentence, record, isSentence: true }
}

/** Whether the response only refers to the record that was changed. */
function returnsReference({ method, returns }: OperationDescription): boolean {
  if (method === 'GET' || returns.kind !== 'data') return false
  return Object.keys(returns.schema.properties ?? {}).every((name) => name === '_links' || name === 'id')
}

async function buildCreated(
  task: CommandTask,
  plural: string,
  { data }: ApiResponse,
  { defaults }: PreparedRequest,
  run: CommandRun,
): Promise<RequestOutcome> {
  const { id } = data as { id: string }
  const resource = task.api.resources[plural]
  const record = (await fetchRecord(task, plural, id, run)) ?? { id }
  const name = String((record as OutputRecord).name ?? id)
  const sentence = `Created ${toNoun(resource?.name ?? plural)} ${name}${toDefaultsText(defaults)}.`
  return { sentence, record, ...(resource ? { columns: resource.columns } : {}) }
}

/** The defaults that were filled in, in brackets. */
function toDefaultsText(defaults: readonly string[]): string {
  return defaults.length === 0 ? '' : ` (${defaults.join(', ')})`
}

/** The outcome of a response without content: the record after the change, or a sentence. */
async function buildDone(
  task: CommandTask,
  { ids, defaults, label, removed }: PreparedRequest,
  run: CommandRun,
): Promise<RequestOutcome> {
  const { operation, api } = task
  const [head = '', parameter = ''] = splitPath(operation.path)
  const resource = api.resources[head]
  const id = parameter.startsWith(':') ? ids[parameter.slice(1)] : undefined
  const removals = removed.length === 0 ? '' : ` Removed: ${removed.join(', ')}.`
  // Defaults of an action, such as no end, are what its name says.
  const defaultsText = operation.method === 'PUT' ? toDefaultsText(defaults) : ''
  const sentence = `${describeChange(task, resource, label)}${defaultsText}.${removals}`
  const isDeleted = operation.method === 'DELETE' && splitPath(operation.path).length === 2
  const record = id !== undefined && !isDeleted ? await fetchRecord(task, head, id, run) : undefined
  if (record) return { sentence, record, columns: chooseColumns(head, api) }
  const facts = { ...(id === undefined ? {} : { id }), ...(isDeleted ? { deleted: true } : { done: operation.id }) }
  return { sentence, record: facts, isSentence: true }
}

/** Sentences for operations that have no record, and go on or leave something behind; the full stop follows. */
const SENTENCES: Readonly<Record<string, string>> = {
  checkDataIntegrity: 'Started a check of the data; its results: controller database data-integrity-results',
  fixDataIntegrity:
    'Made a snapshot, and started a check of the data that repairs it; its results: controller database data-integrity-results',
  createDatabaseSnapshot:
    'Made a verified backup, on the machine of the controller in backup.directory, by default backups in its data directory',
}

function describeChange(
  { commandId, operation }: CommandTask,
  resource: ResourceDescription | undefined,
  label: string,
): string {
  const sentence = SENTENCES[operation.id]
  if (sentence !== undefined) return sentence
  const [noun = '', verb = ''] = commandId.split(':')
  const subject = `${toNoun(resource?.name ?? noun)}${label === '' ? '' : ` ${label}`}`
  if (isVerb(verb)) return `${toParticiple(verb)} ${subject}`
  const [word = '', ...object] = verb.split('-')
  if (isVerb(word)) return `${toParticiple(word)} ${object.join(' ')} of ${subject}`
  return `Done: ${toNoun(verb)} of ${subject}`
}

const VERBS = new Set([
  'add',
  'remove',
  'request',
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
  plural: string,
  id: string,
  { client }: CommandRun,
): Promise<OutputRecord | undefined> {
  const detail = api.operations.find(({ method, path }) => method === 'GET' && isPathOf(path, plural, ':id'))
  if (!detail) return undefined
  const { data } = await client.call('GET', detail.path.replace(':id', encodeURIComponent(id)))
  return data as OutputRecord
}

/** Whether a path has these parts. */
function isPathOf(path: string, ...parts: readonly string[]): boolean {
  return splitPath(path).join('/') === parts.join('/')
}

/** The columns of the list of these records. */
function chooseColumns(plural: string, api: ApiDescription): readonly string[] {
  const list = api.operations.find(({ method, path }) => method === 'GET' && isPathOf(path, plural))
  return list ? getColumns(list, api) : []
}

/**
 * The file for the JWT, before the request is sent; undefined if stdout or no file is requested.
 * @throws CommandError with exit code 2 if it is not a regular file, 6 if it has another content than an earlier JWT of the
 * record, unless `--force` is set or the user confirms, 1 if it cannot be written
 */
export async function reserveJwtFile(
  task: CommandTask,
  request: PreparedRequest,
  run: CommandRun,
): Promise<ReservedFile | undefined> {
  const path = run.flags['jwt-file'] as string | undefined
  if (path === undefined || path === '-') return undefined
  const target = findFileTarget(path)
  const isReplaceable =
    run.flags.force === true || !target.status?.size || (await isJwtOf(target.path, task, request, run))
  if (!isReplaceable) await confirmReplacement(path, 'is not the token of this record', 'jwt-file')
  return ReservedFile.create(target)
}

/** Whether the file contains a JWT of the record of the request: of its id, or of the identity that it belongs to. */
async function isJwtOf(path: string, task: CommandTask, { ids }: PreparedRequest, run: CommandRun): Promise<boolean> {
  const subject = readJwtSubject(path)
  if (subject === undefined) return false
  const [head = ''] = splitPath(task.operation.path)
  const { id } = ids
  if (id === undefined) return false
  return id === subject || Object.values((await fetchRecord(task, head, id, run)) ?? {}).includes(subject)
}

/** Prints an outcome. @throws CommandError with exit code 5 if its JWT is requested, and there is none */
export async function printOutcome(
  task: CommandTask,
  outcome: RequestOutcome,
  run: CommandRun,
  jwtFile: ReservedFile | undefined,
): Promise<void> {
  try {
    await printParts(task, outcome, run, jwtFile)
  } catch (error) {
    throw outcome.sentence === undefined ? error : explainLostOutput(error, task, outcome.record, run)
  }
}

/** If the record after a change cannot be printed, the command that prints it again. */
function explainLostOutput(
  error: unknown,
  { commandId }: CommandTask,
  { name, id }: OutputRecord,
  { flags }: CommandRun,
): unknown {
  const label = name ?? id
  if (!(error instanceof CommandError && error.code === OUTPUT_LOST) || typeof label !== 'string') return error
  const isJwtLost = flags.output === 'jwt' || flags['jwt-file'] !== undefined
  const command = toCommandLine(`${commandId.split(':')[0]} get`, [label, ...(isJwtLost ? ['-o', 'jwt'] : [])])
  const hint = `the change is made; after some space is free, its result is shown by: ${command}`
  return new CommandError(error.exitCode, error.code, error.message, { hint })
}

async function printParts(
  task: CommandTask,
  { sentence, record, columns, isSentence, text }: RequestOutcome,
  run: CommandRun,
  jwtFile: ReservedFile | undefined,
): Promise<void> {
  const { carriesJwt } = task
  const { flags, notice, print } = run
  if (text !== undefined) return print({ kind: 'text', text })
  if (isSentence && sentence !== undefined) return print({ kind: 'done', sentence, facts: record })
  if (sentence !== undefined) notice(sentence)
  const path = carriesJwt ? (flags['jwt-file'] as string | undefined) : undefined
  const jwt = findJwt(record)
  if ((path !== undefined || flags.qr === true) && jwt === undefined) throw noJwtError()
  if (flags.qr === true && jwt !== undefined) {
    const { renderQrCode } = await import('../terminal/qr.ts')
    process.stderr.write(`${(await renderQrCode(jwt)).join('\n')}\n`)
  }
  if (jwtFile && jwt !== undefined) {
    jwtFile.commit(`${jwt}\n`)
    notice(`Wrote the enrollment JWT to ${path}.`)
  }
  for (const line of await describeToken(task, record, run)) notice(line)
  if (path === '-' && jwt !== undefined) return print({ kind: 'text', text: jwt })
  await print({ kind: 'record', record, ...(columns ? { columns } : {}) })
}
