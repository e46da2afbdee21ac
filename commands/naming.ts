// From an operation to the command that does it: a noun and a verb, read off method and path.
import type { ApiDescription, OperationDescription, ResourceDescription } from '../src/client/api-description.ts'

/** Operations that the command of another, or one written by hand, stands for. */
export const DONE_ELSEWHERE: Readonly<Record<string, string>> = {
  authenticate: 'login',
  authenticateMfa: 'login',
  listRoot: 'version',
  adviseOnPolicies: 'policy:advise',
  judgePolicyImpact: 'policy:impact',
  // The same at a second path.
  updateControllerSetting: 'controller-setting:replace',
  patchControllerSetting: 'controller-setting:update',
  deleteControllerSetting: 'controller-setting:delete',
}

/** Names that people expect, where the path gives another. */
const COMMAND_NAMES: Readonly<Record<string, string>> = {
  listVersion: 'version',
  listSummary: 'summary',
  listEnumeratedCapabilities: 'capability:list',
  listWellKnownCas: 'well-known-ca:list',
  detailSpecBody: 'spec:show',
  detailMfa: 'mfa:get',
  enrollMfa: 'mfa:enroll',
  deleteMfa: 'mfa:remove',
  verifyMfa: 'mfa:verify',
  detailMfaQrCode: 'mfa:qr-code',
  detailMfaRecoveryCodes: 'mfa:recovery-codes',
  createMfaRecoveryCodes: 'mfa:new-recovery-codes',
}

const CRUD: Readonly<Record<string, string>> = {
  GET: 'get',
  PUT: 'replace',
  PATCH: 'update',
  DELETE: 'delete',
  POST: 'create',
}

/** A path below a record or a topic: what each method does to it, where GET has taken the bare word. */
const PREFIXES: Readonly<Record<string, string>> = {
  POST: 'add-',
  PUT: 'replace-',
  PATCH: 'update-',
  DELETE: 'remove-',
}

/**
 * The id of the command, `identity:list`; words of commands are separated by spaces where people type them.
 *
 * `/identities` is `identity list` or `create`, `/identities/:id` is `get`, `replace`, `update` or `delete`,
 * `/identities/:id/disable` is `identity disable`. Where a word is read and written, the bare word reads it. Below a second name
 * of a resource stand the same commands: `/transit-routers` is `router list`, too.
 */
export function toCommandId(operation: OperationDescription, api: ApiDescription): string {
  const { id, method, path } = operation
  const known = COMMAND_NAMES[id]
  if (known) return known
  const [head = '', ...rest] = splitPath(path)
  const roles = /^(.+)-role-attributes$/.exec(head)
  if (roles) return `${roles[1]}:role-attributes`
  const noun = findResource(head, api)?.name ?? (isListed(operation) ? toSingular(head) : head)
  const words = wordsOf(rest)
  if (words.length === 0) return `${nounOf(noun, head, rest, api)}:${verbOf(operation, rest)}`
  const isRead = method !== 'GET' && api.operations.some((other) => other.method === 'GET' && other.path === path)
  const prefix = isRead || method === 'DELETE' || method === 'PATCH' ? (PREFIXES[method] ?? '') : ''
  return `${nounOf(noun, head, rest, api)}:${prefix}${words.join('-')}`
}

/** The resource whose records are found below `/head`. */
export function findResource(head: string, { resources }: ApiDescription): ResourceDescription | undefined {
  return resources[head] ?? Object.values(resources).find(({ otherName }) => otherName?.plural === head)
}

/** Whether the operation stands a second time under the first name of its resource. */
export function hasAlternatePath({ path }: OperationDescription, { resources }: ApiDescription): boolean {
  const [head = ''] = splitPath(path)
  return Object.values(resources).some(({ otherName }) => otherName?.plural === head)
}

/** The words below the noun; one of many is in the singular: `authenticators/:id` is `authenticator`. */
function wordsOf(rest: readonly string[]): string[] {
  return rest.flatMap((word, at) => {
    if (word.startsWith(':')) return []
    return rest[at + 1]?.startsWith(':') && at === 0 ? [toSingular(word)] : [word]
  })
}

/** `/specs/:id` belongs to the same noun as `/specs`. */
function nounOf(noun: string, head: string, rest: readonly string[], api: ApiDescription): string {
  if (noun !== head || rest.length === 0 || findResource(head, api)) return noun
  return api.operations.some((other) => other.path === `/${head}` && isListed(other)) ? toSingular(head) : noun
}

function verbOf(operation: OperationDescription, rest: readonly string[]): string {
  return rest.length === 0 && isListed(operation) ? 'list' : (CRUD[operation.method] ?? 'get')
}

/** The parts of a path; operations of this product's own lie below `/controller/`, which says nothing to people. */
export function splitPath(path: string): string[] {
  const parts = path.split('/').filter((part) => part !== '')
  return parts[0] === 'controller' && parts.length > 1 ? parts.slice(1) : parts
}

/** Whether the answer is a list, of records or of anything else. */
export function isListed({ returns }: OperationDescription): boolean {
  return returns.kind === 'list' || (returns.kind === 'data' && returns.schema.type === 'array')
}

/** `policies` → `policy`; only for words that no resource defines. */
export function toSingular(plural: string): string {
  return plural.replace(/ies$/, 'y').replace(/s$/, '')
}

/** How people type a command. */
export function toTypedCommand(id: string): string {
  return id.replaceAll(':', ' ')
}
