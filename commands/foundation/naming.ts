// Derives the id of an operation's command, a noun and a verb, from its method and path.
import type { ApiDescription, OperationDescription, ResourceDescription } from '../../src/client/api-description.ts'

/** Operations without a command of their own, with the command that calls them or their equivalent. */
export const REPLACED_OPERATIONS: Readonly<Record<string, string>> = {
  authenticate: 'login',
  authenticateMfa: 'login',
  diagnose: 'doctor',
  fixDiagnoses: 'doctor',
  detailMfa: 'mfa:status',
  enrollMfa: 'mfa:enroll',
  verifyMfa: 'mfa:enroll',
  detailMfaQrCode: 'mfa:enroll',
  deleteMfa: 'mfa:remove',
  detailMfaRecoveryCodes: 'mfa:recovery-codes',
  createMfaRecoveryCodes: 'mfa:recovery-codes',
  renewMfaRecoveryCodes: 'mfa:recovery-codes',
  listVersion: 'version',
  listRoot: 'version',
  watchEvents: 'events:watch',
  readMetrics: 'top',
  adviseOnPolicies: 'policy:advise',
  testExternalJwtSigner: 'external-jwt-signer:test',
  testWebhook: 'webhook:test',
  judgePolicyImpact: 'policy:impact',
  exportNetwork: 'export',
  planNetwork: 'plan',
  applyNetwork: 'apply',
  stopApplyNetwork: 'apply',
  drainNode: 'node:drain',
  resumeNode: 'node:resume',
  describeIdentityPosture: 'identity:posture',
  testPostureCheck: 'posture-check:test',
  verifyCa: 'ca:verify',
  showLogLevel: 'log:level',
  setLogLevel: 'log:level',
  rotateIntermediate: 'pki:rotate',
  rotateRoot: 'pki:rotate',
  finishRootRotation: 'pki:rotate',
  extendCurrentIdentityAuthenticator: 'renew',
  extendVerifyCurrentIdentityAuthenticator: 'renew',
  // The same operations at a second path.
  updateControllerSetting: 'controller-setting:replace',
  patchControllerSetting: 'controller-setting:update',
  deleteControllerSetting: 'controller-setting:delete',
}

/** Ids of commands whose path gives a poor name. */
const COMMAND_NAMES: Readonly<Record<string, string>> = {
  listSummary: 'summary',
  listEnumeratedCapabilities: 'capability:list',
  listWellKnownCas: 'well-known-ca:list',
  detailSpecBody: 'spec:show',
}

const CRUD: Readonly<Record<string, string>> = {
  GET: 'get',
  PUT: 'replace',
  PATCH: 'update',
  DELETE: 'delete',
  POST: 'create',
}

/** The prefixes of the methods of a path below a record or a topic, if the plain word is the command of GET. */
const PREFIXES: Readonly<Record<string, string>> = {
  POST: 'add-',
  PUT: 'replace-',
  PATCH: 'update-',
  DELETE: 'remove-',
}

/**
 * The id of the command, `identity:list`; on the command line a space replaces the colon.
 *
 * `/identities` is `identity list` or `create`, `/identities/:id` is `get`, `replace`, `update` or `delete`,
 * `/identities/:id/disable` is `identity disable`. If a path can be read and written, the plain word reads it. The paths of a
 * resource's second name have the same commands: `/transit-routers` is also `router list`.
 */
export function toCommandId(operation: OperationDescription, api: ApiDescription): string {
  const { id, method, path } = operation
  const commandId = COMMAND_NAMES[id]
  if (commandId) return commandId
  const [head = '', ...rest] = splitPath(path)
  const roles = /^(.+)-role-attributes$/.exec(head)
  if (roles) return `${roles[1]}:role-attributes`
  const noun = findResource(head, api)?.name ?? (isListed(operation) ? toSingular(head) : head)
  const words = toWords(rest)
  if (words.length === 0) return `${toCommandNoun(noun, head, api)}:${toVerb(operation, rest)}`
  const isReadable = method !== 'GET' && api.operations.some((other) => other.method === 'GET' && other.path === path)
  const prefix = isReadable || method === 'DELETE' || method === 'PATCH' ? (PREFIXES[method] ?? '') : ''
  return `${toCommandNoun(noun, head, api)}:${prefix}${words.join('-')}`
}

/** The resource whose records have paths below `/head`. */
export function findResource(head: string, { resources }: ApiDescription): ResourceDescription | undefined {
  return resources[head] ?? Object.values(resources).find(({ otherName }) => otherName?.plural === head)
}

/** Whether the operation also has a path under the first name of its resource. */
export function hasAlternatePath({ path }: OperationDescription, { resources }: ApiDescription): boolean {
  const [head = ''] = splitPath(path)
  return Object.values(resources).some(({ otherName }) => otherName?.plural === head)
}

/** The words after the noun. A word before a parameter is in the singular: `authenticators/:id` is `authenticator`. */
function toWords(rest: readonly string[]): string[] {
  return rest.flatMap((word, at) => {
    if (word.startsWith(':')) return []
    return rest[at + 1]?.startsWith(':') && at === 0 ? [toSingular(word)] : [word]
  })
}

/** The noun of a command: `/specs/:id` has the same noun as `/specs`, and what creates a record as what lists them. */
function toCommandNoun(noun: string, head: string, api: ApiDescription): string {
  if (noun !== head || findResource(head, api)) return noun
  const listPaths = [`/${head}`, `/controller/${head}`]
  return api.operations.some((other) => listPaths.includes(other.path) && isListed(other)) ? toSingular(head) : noun
}

function toVerb(operation: OperationDescription, rest: readonly string[]): string {
  return rest.length === 0 && isListed(operation) ? 'list' : (CRUD[operation.method] ?? 'get')
}

/** The parts of a path, without the prefix `/controller/` of this controller's own operations. */
export function splitPath(path: string): string[] {
  const parts = path.split('/').filter((part) => part !== '')
  return parts[0] === 'controller' && parts.length > 1 ? parts.slice(1) : parts
}

/** Whether the response is a list, of records or of other values. */
export function isListed({ returns }: OperationDescription): boolean {
  return returns.kind === 'list' || (returns.kind === 'data' && returns.schema.type === 'array')
}

/** `policies` → `policy`; only for words that are not the name of a resource. */
export function toSingular(plural: string): string {
  return plural.replace(/ies$/, 'y').replace(/s$/, '')
}

/** A command as it is typed: `identity list`. */
export function toTypedCommand(id: string): string {
  return id.replaceAll(':', ' ')
}
