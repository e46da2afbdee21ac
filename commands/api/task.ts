// The task of a generated command: an operation of the API, and the request for it.
import type { ApiDescription, OperationDescription } from '../../src/client/api-description.ts'
import { splitPath } from '../naming.ts'
import { type BodyFlag, listBodyFlags } from './body-flags.ts'

/** An operation, with the properties that its command needs. */
export interface CommandTask {
  readonly operation: OperationDescription
  readonly api: ApiDescription
  /** The members of its JSON body; empty if it has none. */
  readonly members: readonly BodyFlag[]
  /** Whether the body is text, not JSON. */
  readonly isText: boolean
  /** Whether the body is a list of objects with these members. */
  readonly isBatch: boolean
  /** Whether the name of the new record is an argument. */
  readonly isNamedByArgument: boolean
  /** Whether the record that it creates or changes may contain an enrollment JWT. */
  readonly carriesJwt: boolean
  /** Whether `--data` provides the whole body; false if a member has that name. */
  readonly takesData: boolean
}

/** A request before it is sent. */
export interface PreparedRequest {
  readonly path: string
  /** The ids of the path's parameters. */
  readonly ids: Readonly<Record<string, string>>
  readonly body: unknown
  /** Defaults that were filled in, as text for the user. */
  readonly defaults: readonly string[]
}

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
    api,
    members,
    isText,
    isBatch,
    isNamedByArgument,
    carriesJwt: method !== 'DELETE' && returns.kind !== 'list' && resource?.carriesJwt === true,
    takesData: body !== undefined && !members.some(({ flag }) => flag === 'data'),
  }
}

/** The flag of a query parameter: `policyType` → `policy-type`. */
export function toQueryFlag(parameter: string): string {
  return parameter.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
}
