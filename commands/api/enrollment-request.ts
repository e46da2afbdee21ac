// The one-time token of a new record: whether it is made, when it expires, and what follows if there is none.

import { readExpiry } from '../client/external-jwt.ts'
import { toCommandLine } from '../foundation/command-lines.ts'
import { toTimeText } from '../foundation/times.ts'
import type { CommandRun } from '../framework/connected.ts'
import type { OutputRecord } from '../terminal/cells.ts'
import { findJwt } from '../terminal/formats.ts'
import { canPrompt, confirm } from '../terminal/prompts.ts'
import type { FlagValues } from './body.ts'
import { type BodyFlag, toTypedFlag } from './body-flags.ts'
import type { CommandTask } from './task.ts'

const METHOD_FLAGS: readonly string[] = ['ott', 'ottca', 'updb']
// Other ways by which an identity can sign in.
const OTHER_WAYS: readonly string[] = ['external-id', 'data']

/**
 * The flags with that of an enrollment, if the token of the new record is requested, because it comes from the enrollment. On a
 * terminal, a person is asked who did not say how the new identity signs in.
 */
export async function requestEnrollment(task: CommandTask, { args, flags }: CommandRun): Promise<FlagValues> {
  const methods = listMethods(task)
  const isSet = (flag: string) => flags[flag] !== undefined
  if (!methods.includes('ott') || methods.some(isSet)) return flags
  const withToken = { ...flags, ott: true }
  if (isJwtRequested(flags) || isSet('expires-in')) return withToken
  const isQuestion = canPrompt() && !OTHER_WAYS.some(isSet) && !isSet('output') && flags['dry-run'] !== true
  if (!isQuestion || args.name === undefined) return flags
  return (await confirm(`Create a one-time token, with which ${args.name} enrolls?`, '--ott', true)) ? withToken : flags
}

function isJwtRequested(flags: FlagValues): boolean {
  return flags.output === 'jwt' || flags['jwt-file'] !== undefined || flags.qr === true
}

/** The flags of the methods by which a new record can enroll. */
function listMethods({ members }: CommandTask): string[] {
  const isMethod = ({ path }: BodyFlag) => path[0] === 'enrollment' && METHOD_FLAGS.includes(path[1] ?? '')
  return members.filter(isMethod).map(toTypedFlag)
}

/** Tells the user about the token of a record: when it expires, and how to obtain it, if the command does not print it. */
export async function describeToken(task: CommandTask, record: OutputRecord, { flags }: CommandRun): Promise<string[]> {
  const jwt = task.carriesJwt ? findJwt(record) : undefined
  const [noun = ''] = task.commandId.split(':')
  const label = String(record.name ?? record.id)
  if (jwt === undefined) return listMethods(task).length > 0 ? describeNoToken(record, label) : []
  const expiresAt = await readExpiry(jwt)
  if (expiresAt === undefined) return []
  if (isJwtRequested(flags)) return [`The token expires ${toTimeText(expiresAt)}, at ${expiresAt}.`]
  if (task.operation.method === 'GET') return []
  const command = toCommandLine(`${noun} get`, [label, '-o', 'jwt'])
  return [`Its token expires ${toTimeText(expiresAt)}, at ${expiresAt}.`, `Next: ${command}`]
}

/** Suggests a command for a new identity that has no way to sign in. */
function describeNoToken({ externalId }: OutputRecord, label: string): string[] {
  if (typeof externalId === 'string' && externalId !== '') return []
  const command = toCommandLine('enrollment create', ['--identity', label, '--method', 'ott'])
  return [`${label} cannot sign in yet: it has no credential, and no token to obtain one.`, `Try: ${command}`]
}
