// The management API as data: what the build writes for the command line, so that it knows every operation without the server.
import type { JsonSchema } from '../schema/json-schema.ts'

/** A parameter of the query string. */
export interface ParameterDescription {
  readonly schema: JsonSchema
  readonly isRequired?: boolean
  readonly isMultiple?: boolean
}

export interface BodyDescription {
  readonly schema: JsonSchema
  readonly isRequired: boolean
  readonly contentTypes: readonly string[]
}

/** What an answer holds; `resource` is a plural name. */
export type ReturnsDescription =
  | { readonly kind: 'record' | 'list' | 'created'; readonly resource: string }
  | { readonly kind: 'data'; readonly schema: JsonSchema }
  | { readonly kind: 'empty' }
  | { readonly kind: 'raw'; readonly contentType: string }

export interface OperationDescription {
  readonly id: string
  readonly method: string
  /** Below the management API, parameters as `:id`. */
  readonly path: string
  /** One sentence. */
  readonly summary: string
  readonly topic: string
  readonly query?: Readonly<Record<string, ParameterDescription>>
  readonly body?: BodyDescription
  readonly returns: ReturnsDescription
  /** Anyone may call it, without a session. */
  readonly isPublic?: true
}

export interface ResourceDescription {
  readonly name: string
  readonly plural: string
  /** A second pair of names under which the same records are found. */
  readonly otherName?: { readonly name: string; readonly plural: string }
  readonly summary: string
  /** Whether records can be found by name. */
  readonly isNamed: boolean
  /** Members that a list shows; for references the one that holds the name. */
  readonly columns: readonly string[]
  /** Whether a record may carry an enrollment JWT. */
  readonly carriesJwt: boolean
  /** A name that stands in examples: of the record they make, else of one that is there from the beginning. */
  readonly exampleName: string
  readonly example: { readonly create: Readonly<Record<string, unknown>>; readonly filter: string }
}

export interface ApiDescription {
  /** By plural name. */
  readonly resources: Readonly<Record<string, ResourceDescription>>
  readonly operations: readonly OperationDescription[]
}
