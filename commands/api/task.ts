// What a generated command works on: an operation of the API with what follows from it, and the request made for it.
import type { ApiDescription, OperationDescription } from '../../src/client/api-description.ts'
import { splitPath } from '../naming.ts'
import { type BodyFlag, listBodyFlags } from './body-flags.ts'

/** An operation with what its command needs to know of it. */
export interface CommandTask {
  readonly operation: OperationDescription
  readonly api: ApiDescription
  /** Members of its body; none where it takes no JSON. */
  readonly members: readonly BodyFlag[]
  /** The body is text, not JSON. */
  readonly isText: boolean
  /** The body is a list of such members. */
  readonly isBatch: boolean
  /** The new record's name is an argument. */
  readonly isNamedByArgument: boolean
  /** The record it makes or changes may carry an enrollment JWT. */
  readonly carriesJwt: boolean
  /** `--data` is the whole body, unless a member has that name. */
  readonly takesData: boolean
}

/** A request that waits to be sent. */
export interface PreparedRequest {
  readonly path: string
  /** The ids behind the path's parameters. */
  readonly ids: Readonly<Record<string, string>>
  readonly body: unknown
  /** What was filled in for the person, to be said. */
  readonly assumed: readonly string[]
}

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

/** Query parameters as flags: `policyType` is `--policy-type`. */
export function toQueryFlag(parameter: string): string {
  return parameter.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
}
