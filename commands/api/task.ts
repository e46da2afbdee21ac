// The task of a generated command: an operation of the API, and the request for it.
import type { ApiDescription, OperationDescription } from '../../src/client/api-description.ts'
import { splitPath, toCommandId } from '../foundation/naming.ts'
import { listPathArguments } from './arguments.ts'
import { type BodyFlag, listBodyFlags } from './body-flags.ts'
import { routerConfiguration } from './edge-router/configuration-file.ts'
import type { TaskExtension } from './task-extension.ts'

/** An operation, with the properties that its command needs. */
export interface CommandTask {
  readonly operation: OperationDescription
  /** The id of its command: `identity:update`. */
  readonly commandId: string
  readonly api: ApiDescription
  /** The members of its JSON body; empty if it has none. */
  readonly members: readonly BodyFlag[]
  /** Whether the body is text, not JSON. */
  readonly isText: boolean
  /** Whether the body is a list of objects with these members. */
  readonly isBatch: boolean
  /** Whether the name of the new record is an argument. */
  readonly isNamedByArgument: boolean
  /** Whether it works on several records at once: those that are named, or that a filter selects. */
  readonly isBulk: boolean
  /** Whether it returns a record that may contain an enrollment JWT, or issues one. */
  readonly carriesJwt: boolean
  /** Whether `--data` provides the whole body; false if a member has that name. */
  readonly takesData: boolean
  readonly extension: TaskExtension | undefined
}

/** A request before it is sent. */
export interface PreparedRequest {
  readonly path: string
  /** The ids of the path's parameters. */
  readonly ids: Readonly<Record<string, string>>
  readonly body: unknown
  /** The record as the user names it; empty if the path names none. */
  readonly label: string
  /** Defaults that were filled in, as text for the user. */
  readonly defaults: readonly string[]
  /** Entries of sets that the body does not name any more, as text for the user. */
  readonly removed: readonly string[]
}

/** By the id of the operation. */
const EXTENSIONS: Readonly<Record<string, TaskExtension>> = { createEdgeRouter: routerConfiguration }

/** The operation as a task of a command. */
export function makeTask(operation: OperationDescription, api: ApiDescription): CommandTask {
  const { body, path, method, returns } = operation
  const isText = body !== undefined && !body.contentTypes.includes('application/json')
  const isBatch = body?.schema.type === 'array'
  const members = body && !isText ? listBodyFlags(body.schema) : []
  const isNamedByArgument = method === 'POST' && !path.includes(':') && members.some(({ flag }) => flag === 'name')
  const resource =
    returns.kind === 'created' ? api.resources[returns.resource] : api.resources[splitPath(path)[0] ?? '']
  return {
    operation,
    commandId: toCommandId(operation, api),
    api,
    members,
    isText,
    isBatch,
    isNamedByArgument,
    isBulk: isBulkOperation(operation, api),
    carriesJwt:
      resource?.carriesJwt === true && (returns.kind === 'record' || returns.kind === 'created' || isReissue(path)),
    takesData: body !== undefined && !members.some(({ flag }) => flag === 'data'),
    extension: EXTENSIONS[operation.id],
  }
}

/** Whether an operation changes a single record that its path names: the same change can be made to others. */
function isBulkOperation(operation: OperationDescription, api: ApiDescription): boolean {
  const { method, path } = operation
  const pathArguments = listPathArguments(operation, api)
  const [argument] = pathArguments
  if (method === 'GET' || method === 'PUT' || pathArguments.length !== 1 || !argument?.resource) return false
  return splitPath(path)[1]?.startsWith(':') === true && argument.list === argument.resource.path
}

/** Whether an operation issues a new enrollment token for a record that exists. */
function isReissue(path: string): boolean {
  return ['re-enroll', 'refresh'].includes(splitPath(path).at(-1) ?? '')
}

/** The flag of a query parameter: `policyType` → `policy-type`. */
export function toQueryFlag(parameter: string): string {
  return parameter.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
}
