// The description of the management API that the build writes for the command line, which does not load the server.
import type { JsonSchema } from '../definitions/schema/json-schema.ts'

/** A parameter of the query string. */
interface ParameterDescription {
  readonly schema: JsonSchema
  readonly isRequired?: boolean
  readonly isMultiple?: boolean
}

interface BodyDescription {
  readonly schema: JsonSchema
  readonly isRequired: boolean
  readonly contentTypes: readonly string[]
}

/** The content of a response; `resource` is a plural name. */
type ReturnsDescription =
  | { readonly kind: 'record' | 'list' | 'created'; readonly resource: string }
  | { readonly kind: 'data'; readonly schema: JsonSchema }
  | { readonly kind: 'empty' }
  | { readonly kind: 'raw'; readonly contentType: string }

export interface OperationDescription {
  readonly id: string
  readonly method: string
  /** The path below the management API, with parameters as `:id`. */
  readonly path: string
  /** One sentence. */
  readonly summary: string
  readonly topic: string
  readonly query?: Readonly<Record<string, ParameterDescription>>
  readonly body?: BodyDescription
  readonly returns: ReturnsDescription
  /** Set if the operation does not require an API session. */
  readonly isPublic?: true
  /** Set if the controller can try the operation without making its change. */
  readonly canDryRun?: true
}

export interface ResourceDescription {
  readonly name: string
  readonly plural: string
  /** The path of its records, below the management API. */
  readonly path: string
  /** A second pair of names with paths to the same records. */
  readonly otherName?: { readonly name: string; readonly plural: string }
  readonly summary: string
  /** Whether records have names. */
  readonly isNamed: boolean
  /** For records without names: the filter symbol of the identity that each belongs to. */
  readonly ownerSymbol?: string
  /** The columns of a list; for references the member with the name. */
  readonly columns: readonly string[]
  /** Members that are credentials, and are not printed. */
  readonly credentials: readonly string[]
  /** Whether a record may contain an enrollment JWT. */
  readonly carriesJwt: boolean
  /** The name in examples: of the record that they create, else of one that always exists. */
  readonly exampleName: string
  readonly example: { readonly create: Readonly<Record<string, unknown>>; readonly filter: string }
}

export interface ApiDescription {
  /** By plural name. */
  readonly resources: Readonly<Record<string, ResourceDescription>>
  readonly operations: readonly OperationDescription[]
}
