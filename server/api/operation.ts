// One operation of the APIs, as data: the routes, the documents, the commands and the contract tests follow from it.
import type { Socket } from 'node:net'
import type { AccessToken } from '../../src/authentication/openid-connect/access-tokens.ts'
import type { OAuthError } from '../../src/authentication/openid-connect/oauth-error.ts'
import type { Controller } from '../../src/controller/controller.ts'
import { getResource } from '../../src/definitions/resources/index.ts'
import {
  type BodyPurpose,
  type BodyTolerance,
  buildBodyShape,
  readBodies,
  readBody,
} from '../../src/definitions/schema/bodies.ts'
import type { SizeLimit } from '../../src/definitions/schema/body-sizes.ts'
import type { Fields } from '../../src/definitions/schema/fields.ts'
import type { JsonSchema } from '../../src/definitions/schema/json-schema.ts'
import type { Awaitable } from '../../src/foundation/awaitable.ts'
import { type ControllerError, invalidError } from '../../src/foundation/errors.ts'
import type { PeerCertificates } from '../../src/pki/peer-certificates.ts'
import type { Api, Dialect, ListenerApi } from '../../src/settings/listener-settings.ts'
import type { Context } from '../../src/storage/transactions/context.ts'
import type { Monitor } from './monitor.ts'
import type { Response } from './responses.ts'

type HttpMethod = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/**
 * The callers that may call an operation. `administrator`: identities that administer, and those that hold the permission, unless the
 * operation is of the client API. `authenticated`: every full session.
 * `partial`: also a session that still owes a second factor.
 */
type OperationAccess =
  | {
      readonly permission: string
      readonly grantedTo: 'administrator' | 'authenticated' | 'partial'
      /** A full session without the right is told 403; without this the peer's 401, as for no session at all. */
      readonly isForbidden?: boolean
      /**
       * The resource (plural) whose records it lists, or whose record its path names: identities that hold the permission on some of
       * the records may call it for these.
       */
      readonly records?: string
      /** Of an operation for every session: callers by the token of a machine may call it, too. */
      readonly acceptsTokens?: true
      /** Identities that read anything may call it, because it shows each caller only what that may read. */
      readonly isFiltered?: true
    }
  /** Every caller, for this reason. */
  | { readonly public: string }

/** A parameter of the query string. */
export interface QueryParameter {
  readonly schema: JsonSchema
  readonly isRequired?: boolean
  /** May be given several times; its value is an array. */
  readonly isMultiple?: boolean
  /** Is refused if it is given several times; otherwise the last one counts. */
  readonly isOnce?: boolean
  /** The error for a value that does not match the schema; COULD_NOT_VALIDATE by default. */
  refuse?(): ControllerError
}

/** How a body is read: what it must be, and what the operation gets of it. */
export interface BodyReader<B> {
  readonly schema: JsonSchema
  readonly isRequired: boolean
  /** Content types that are taken; `application/json` unless said otherwise. */
  readonly contentTypes: readonly string[]
  /** @throws COULD_NOT_PARSE_BODY, COULD_NOT_VALIDATE */
  read(sent: unknown, tolerance: BodyTolerance): B
}

/** A call of an operation. */
export interface Call<B = unknown> {
  readonly operation: AnyOperation
  readonly controller: Controller
  readonly context: Context
  readonly params: Readonly<Record<string, string>>
  readonly query: Readonly<Record<string, unknown>>
  readonly body: B
  readonly dialect: Dialect
  /** Of the content types of the response, the one that the client prefers. */
  readonly contentType: string
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  /** Whether the listener that the request came in by carries an API. */
  isCarried(api: ListenerApi): boolean
  /** The certificates of the TLS client. */
  readonly peer: PeerCertificates
  /** The bearer tokens of the request, in the order sent; nothing about them is verified. */
  readonly bearerTokens: readonly string[]
  /** The one of them that is the access token of the caller's session. */
  readonly accessToken: AccessToken | undefined
  /** Whether the client asks for a WebSocket, which a response may begin. */
  asksForWebSocket(): boolean
  /**
   * The ports of the connection, and whether its client is gone. To read ports is a call to the system, which few operations
   * need.
   */
  readonly socket: Pick<Socket, 'localPort' | 'remotePort' | 'destroyed'>
  /** The sources of what is measured of this process. */
  readonly monitor: Monitor
}

/** The shape of a response's `data`, for documents. */
export type Returns =
  | {
      readonly kind: 'record' | 'list' | 'created'
      readonly resource: string
      /** The members that are shown besides those of every record, if not all are. */
      readonly only?: readonly string[]
      /** Members that not every record has, and that are always shown here. */
      readonly always?: readonly string[]
      /** Of a list: the member of `data` that holds it, if it is not `data` itself. */
      readonly under?: string
      /** The record was made just now: the status is 201. */
      readonly isNew?: true
    }
  /** `isPage`: the envelope says of which page of a list these are the records. `isNew`: the status is 201. */
  | { readonly kind: 'data'; readonly schema: JsonSchema; readonly isPage?: true; readonly isNew?: true }
  /** `isAccepted`: the work goes on after the response, whose status is 202. */
  | { readonly kind: 'empty'; readonly isAccepted?: true }
  /** No envelope: text, or JSON of this schema. `otherContentTypes`: what it is sent as to clients that prefer them. */
  | {
      readonly kind: 'raw'
      readonly contentType: string
      readonly otherContentTypes?: readonly string[]
      readonly schema?: JsonSchema
    }

export interface Operation<B = unknown> {
  /** Unique within an API, as clients generated from the documents know it: `listServices`. */
  readonly id: string
  readonly apis: readonly Api[]
  readonly method: HttpMethod
  /** Relative to the API's base path, parameters as `:id`. */
  readonly path: string
  /** Paths at the root of the server at which it is found too. */
  readonly atRoot?: readonly string[]
  /** The API that a listener must carry for paths at the root; without it, every listener has them. */
  readonly listenerApi?: ListenerApi
  /** One sentence. */
  readonly summary: string
  /** The resource it belongs to, by its plural name; the documents and the commands group by it. */
  readonly topic: string
  readonly access: OperationAccess
  readonly query?: Readonly<Record<string, QueryParameter>>
  /** Headers of the request, in lower case, that it reads besides those of every request; `run` finds them in `headers`. */
  readonly headers?: Readonly<Record<string, QueryParameter>>
  readonly body?: BodyReader<B>
  readonly returns: Returns
  /** The response has one form and is sent in it whatever `Accept` says, because clients name others and read this one. */
  readonly hasOneForm?: boolean
  /** Headers of its success besides those of every response. */
  readonly responseHeaders?: Readonly<Record<string, JsonSchema>>
  /** Statuses by which it refuses besides those that follow from what it is. */
  readonly errorStatuses?: readonly number[]
  /** The part that is not implemented, although the operation is served; the documents say so, and a test lists such operations. */
  readonly incomplete?: string
  /**
   * The form of its errors, if it is not the envelope of the APIs: that of OAuth 2.0, or the members of the envelope's error alone,
   * as clients know the paths of a sign-in by OpenID Connect.
   */
  readonly errorForm?: 'oauth' | 'bare'
  /** The setting that limits its body, if it is not the one that follows from who may call it. */
  readonly bodyLimit?: 'limits.postureBody' | 'limits.networkFile'
  /** How many entries its body may have, by depth, if its bytes alone would allow too many. */
  readonly sizeLimits?: readonly SizeLimit[]
  /**
   * The reason for which it grants nothing, so that one of several controllers serves it also while it does not know what the others have
   * revoked. All other operations wait for contact with them.
   */
  readonly grantsNothing?: string
  /** Not part of the documented contract, but this product's own. */
  readonly isOwn?: boolean
  /** Identities that do not administer change audited records of their own by it, and may do so a few times a minute. */
  readonly isOwnChange?: true
  /** All that it does is one transaction, so that a dry run can roll it back. */
  readonly canDryRun?: true
  /** Only the controller that has the routers can run it. */
  readonly needsRouters?: true
  /** It runs without a timeout, because its duration grows with the amount of data. */
  readonly hasNoTimeout?: boolean
  /** The response to an error in place of JSON, for clients that prefer another form by their headers. */
  errorPage?(error: ControllerError | OAuthError, headers: Call['headers']): Response | undefined
  run(call: Call<B>): Awaitable<Response>
}

// biome-ignore lint/suspicious/noExplicitAny: an operation with any body
export type AnyOperation = Operation<any>

export function defineOperation<B = undefined>(definition: Operation<B>): AnyOperation {
  return definition
}

const JSON_TYPES: readonly string[] = ['application/json']

/** The content types that an operation can send; the first one is sent to clients that prefer none. */
export function listContentTypes({ returns }: AnyOperation): readonly string[] {
  return returns.kind === 'raw' ? [returns.contentType, ...(returns.otherContentTypes ?? [])] : JSON_TYPES
}

/** Whether the responses of an operation show secrets. */
export function isConfidential({ returns }: AnyOperation): boolean {
  return 'resource' in returns && getResource(returns.resource).isConfidential
}

/** A JSON array of such objects, at most `maxItems`. A body that is not sent is an empty one, if it is not required. */
export function readListBody<B>(
  fields: Fields,
  { maxItems, isRequired = true }: { maxItems: number; isRequired?: boolean },
): BodyReader<readonly B[]> {
  const shape = buildBodyShape('create', fields)
  return {
    schema: { type: 'array', items: shape.schema, maxItems },
    isRequired,
    contentTypes: ['application/json'],
    read(sent, tolerance) {
      if (Array.isArray(sent) && sent.length > maxItems)
        throw invalidError('body', `must have at most ${maxItems} entries`)
      return readBodies(shape, sent ?? [], tolerance) as B[]
    },
  }
}

export interface BodyOptions {
  readonly purpose?: BodyPurpose
  readonly isRequired?: boolean
  /** Members that are skipped, because the record that is sent back has them. */
  readonly tolerated?: readonly string[]
}

/** A JSON object with these fields; the operation gets their values by field name. */
export function readFieldsBody<B = Record<string, unknown>>(
  fields: Fields,
  { purpose = 'create', isRequired = true, tolerated = [] }: BodyOptions = {},
): BodyReader<B> {
  const shape = buildBodyShape(purpose, fields, tolerated)
  return {
    schema: shape.schema,
    isRequired,
    contentTypes: ['application/json'],
    read: (sent, tolerance) => readBody(shape, sent ?? {}, tolerance) as B,
  }
}
