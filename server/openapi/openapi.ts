// The OpenAPI documents of the APIs, made from the registered operations.
import { STATUS_CODES } from 'node:http'
import { compiledResources, getCompiledResource } from '../../src/definitions/model/index.ts'
import { limitRecordSchema } from '../../src/definitions/model/record-schema.ts'
import {
  entityReference,
  type JsonSchema,
  links,
  listOf,
  objectOf,
  orNull,
  requiredObject,
  text,
  whole,
} from '../../src/definitions/schema/json-schema.ts'
import { errorCatalogue } from '../../src/foundation/errors.ts'
import { version } from '../../src/foundation/version.ts'
import type { Api } from '../../src/settings/listener-settings.ts'
import { SESSION_HEADERS } from '../api/dialects.ts'
import { BASE_PATHS } from '../api/mount-points.ts'
import { type AnyOperation, listContentTypes, type QueryParameter, type Returns } from '../api/operation.ts'
import { POSITION_HEADER } from '../api/position.ts'
import { type OpenApiSchema, SchemaComponents } from './openapi-schema.ts'

const TITLES: Readonly<Record<Api, string>> = {
  client: 'Edge Client API',
  management: 'Edge Management API',
  fabric: 'Fabric API',
}

const SEVERAL_CONTROLLERS = `If several controllers serve the network, the response to a change has the header ${POSITION_HEADER}. A request that sends the greatest one back, to any of them, is served by a state that includes the change; it is refused with 503 if that takes longer than two seconds.`

const bodies = new Map<Api, Buffer>()

/** The document of an API as JSON text, in one buffer for all who ask for it. */
export function renderOpenApiDocument(api: Api, operations: readonly AnyOperation[]): Buffer {
  const body = bodies.get(api) ?? Buffer.from(`${JSON.stringify(buildOpenApiDocument(api, operations), null, 2)}\n`)
  bodies.set(api, body)
  return body
}

/** @param operations every registered operation, of all APIs */
export function buildOpenApiDocument(api: Api, operations: readonly AnyOperation[]) {
  const components = new SchemaComponents(nameSchemas(operations))
  const paths: Record<string, Record<string, unknown>> = {}
  for (const operation of operations.filter(({ apis }) => apis.includes(api))) {
    const path = operation.path.replace(/:(\w+)/g, '{$1}')
    paths[path] = { ...paths[path], [operation.method.toLowerCase()]: describe(operation, components) }
  }
  return {
    openapi: '3.0.3',
    info: { title: TITLES[api], version: version.version, description: SEVERAL_CONTROLLERS },
    servers: [{ url: BASE_PATHS[api] }],
    paths,
    components: {
      securitySchemes: {
        ...Object.fromEntries(
          Object.values(SESSION_HEADERS).map((name) => [name, { type: 'apiKey', in: 'header', name }]),
        ),
        oauth2: OAUTH2,
      },
      schemas: components.schemas,
    },
  }
}

/** The session token goes in any one of the headers, or an access token is the bearer. */
const SESSION = [...Object.values(SESSION_HEADERS), 'oauth2'].map((name) => ({ [name]: [] }))

/** Sign-in by OpenID Connect, by which bearer tokens are issued. The paths are those of the controller, not of the API. */
const OAUTH2 = {
  type: 'oauth2',
  description: 'Access tokens of this controller, by authorization code with PKCE.',
  flows: {
    authorizationCode: {
      authorizationUrl: '/oidc/authorize',
      tokenUrl: '/oidc/oauth/token',
      refreshUrl: '/oidc/oauth/token',
      scopes: { openid: 'The id and the name of the identity.', offline_access: 'A refresh token.' },
    },
  },
}

function describe(operation: AnyOperation, components: SchemaComponents) {
  const { id, topic, summary, access, query = {}, headers = {}, body, isOwn, incomplete } = operation
  const isPublic = 'public' in access
  const inPath = [...operation.path.matchAll(/:(\w+)/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: components.convert(text),
  }))
  const describeParameters = (place: 'query' | 'header', declared: Readonly<Record<string, QueryParameter>>) =>
    Object.entries(declared).map(([name, { schema, isRequired = false, isMultiple = false }]) => ({
      name,
      in: place,
      required: isRequired,
      schema: components.convert(isMultiple ? listOf(schema) : schema),
    }))
  return {
    operationId: id,
    tags: [topic],
    summary,
    ...(isOwn ? { 'x-own': true } : {}),
    ...(incomplete ? { 'x-incomplete': incomplete } : {}),
    ...(isPublic ? { security: [] } : { security: SESSION, 'x-permission': access.permission }),
    parameters: [...inPath, ...describeParameters('query', query), ...describeParameters('header', headers)],
    ...(body
      ? {
          requestBody: {
            required: body.isRequired,
            content: Object.fromEntries(
              body.contentTypes.map((type) => [
                type,
                { schema: components.convert(type === 'application/json' ? body.schema : text) },
              ]),
            ),
          },
        }
      : {}),
    responses: describeResponses(operation, components),
  }
}

function describeResponses(operation: AnyOperation, components: SchemaComponents): Record<string, unknown> {
  const { returns, summary, responseHeaders } = operation
  const describeContent = (types: readonly string[], schema: JsonSchema) =>
    Object.fromEntries(types.map((type) => [type, { schema: components.convert(schema) }]))
  const describeRefusal = (description: string | undefined) => ({
    description,
    content: describeContent(['application/json'], errorSchema),
  })
  const success = {
    description: summary,
    ...(responseHeaders ? { headers: describeHeaders(responseHeaders, components) } : {}),
    content: describeContent(
      listContentTypes(operation),
      returns.kind === 'raw' ? (returns.schema ?? text) : toEnvelopeSchema(operation),
    ),
  }
  return {
    [getSuccessStatus(returns)]: success,
    ...(operation.method === 'GET' ? { 304: NOT_MODIFIED } : {}),
    ...Object.fromEntries(
      listErrorStatuses(operation).map((status) => [
        status,
        {
          ...describeRefusal(STATUS_CODES[status]),
          ...(canRetry(status) ? { headers: describeHeaders(RETRY, components) } : {}),
        },
      ]),
    ),
    default: describeRefusal('An error of the catalogue.'),
  }
}

function describeHeaders(headers: Readonly<Record<string, JsonSchema>>, components: SchemaComponents) {
  return Object.fromEntries(
    Object.entries(headers).map(([name, { description, ...schema }]) => [
      name,
      { ...(description ? { description } : {}), schema: components.convert(schema) as OpenApiSchema },
    ]),
  )
}

const NOT_MODIFIED = { description: 'The client has the response already: If-None-Match names its entity tag.' }

const RETRY = { 'Retry-After': { type: 'integer', minimum: 0, description: 'After how many seconds to try again.' } }

function canRetry(status: number): boolean {
  return status === 429 || status === 503
}

function getSuccessStatus(returns: Returns): '200' | '201' | '202' {
  if (returns.kind === 'empty' && returns.isAccepted) return '202'
  const isNew = returns.kind === 'created' || ('isNew' in returns && returns.isNew)
  return isNew ? '201' : '200'
}

/** The statuses by which callers of the operation have to expect to be refused. */
function listErrorStatuses({
  access,
  path,
  method,
  query,
  body,
  errorStatuses: refusals,
  hasOneForm,
}: AnyOperation): number[] {
  const isPublic = 'public' in access
  const isChange = method !== 'GET'
  const takesBody = isChange || body !== undefined
  const canConflict = isChange && method !== 'DELETE' && !isPublic && body !== undefined
  const statuses: Record<number, boolean> = {
    // A body that is not asked for is looked at, too.
    400: isChange || Object.keys(query ?? {}).length > 0,
    // The body of a public operation holds credentials.
    401: !isPublic || body !== undefined,
    403: !isPublic && access.isForbidden === true,
    404: path.includes(':'),
    406: !isChange && !hasOneForm,
    409: canConflict,
    413: takesBody,
    415: takesBody,
    429: true,
    503: true,
    ...Object.fromEntries((refusals ?? []).map((status) => [status, true])),
  }
  return Object.keys(statuses)
    .map(Number)
    .filter((status) => statuses[status])
}

function toEnvelopeSchema({ returns, query = {} }: AnyOperation): JsonSchema {
  const isPage = 'limit' in query || (returns.kind === 'data' && returns.isPage === true)
  return requiredObject({ data: toDataSchema(returns), meta: isPage ? pageMeta : meta })
}

function toDataSchema(returns: Returns): JsonSchema {
  switch (returns.kind) {
    case 'raw':
    case 'empty':
      return nothing
    case 'data':
      return returns.schema
    case 'created':
      return createdRecord
    case 'record':
      return toRecordSchema(returns)
    case 'list': {
      const records = listOf(toRecordSchema(returns))
      return returns.under === undefined ? records : requiredObject({ [returns.under]: orNull(records) })
    }
  }
}

function toRecordSchema({
  resource,
  only,
  always,
}: Extract<Returns, { kind: 'record' | 'list' | 'created' }>): JsonSchema {
  const { definition, recordSchema } = getCompiledResource(resource)
  const schema = only ? limitRecordSchema(definition, only) : recordSchema
  return always ? { ...schema, required: [...(schema.required ?? []), ...always] } : schema
}

const nothing: JsonSchema = { type: 'object', additionalProperties: false }
const createdRecord = requiredObject({ _links: links, id: text })

const versions = { apiEnrollmentVersion: text, apiVersion: text }
const warnings: JsonSchema = {
  ...listOf(requiredObject({ field: text, reason: text })),
  description: 'The members of the request body that are not known here, and were ignored: the first ten of them.',
}
const meta = requiredObject({ ...versions, warnings }, ['warnings'])
const pageMeta = requiredObject({
  ...versions,
  filterableFields: { ...listOf(text), description: 'What the list can be filtered and sorted by.' },
  pagination: requiredObject({
    limit: { ...whole, description: 'How many records the page can have; −1 is all of them.' },
    offset: { ...whole, minimum: 0 },
    totalCount: { ...whole, minimum: 0, description: 'How many records match, on all pages.' },
  }),
})

const errorSchema = requiredObject({
  error: {
    type: 'object',
    required: ['code', 'message', 'requestId'],
    properties: {
      code: {
        type: 'string',
        enum: [...new Set(Object.entries(errorCatalogue).map(([key, [, , sent]]) => sent ?? key))],
      },
      message: text,
      requestId: text,
      cause: {
        ...objectOf({
          ...{ field: text, reason: text, value: text, code: text, message: text, data: {} },
          others: {
            ...listOf(requiredObject({ field: text, reason: text, value: text })),
            description: 'What else is wrong, if the request can have many mistakes, such as a network file.',
          },
        }),
        description:
          'What was wrong: with one member of the request (field, reason, value), or else (code, message, data).',
      },
    },
  },
  meta,
})

/** The schemas that the documents refer to by name, so that generated clients have a type for each. */
function nameSchemas(operations: readonly AnyOperation[]): ReadonlyMap<JsonSchema, string> {
  const names = new Map<JsonSchema, string>([
    [links, 'links'],
    [entityReference, 'entityReference'],
    [nothing, 'empty'],
    [createdRecord, 'created'],
    [meta, 'meta'],
    [pageMeta, 'pageMeta'],
    [errorSchema, 'error'],
  ])
  for (const { definition, recordSchema } of compiledResources) {
    nameWithAlternatives(names, recordSchema, toCamelCase(definition.name))
  }
  for (const { id, body } of operations) {
    if (body?.schema.oneOf || body?.schema.anyOf) nameWithAlternatives(names, body.schema, id)
  }
  return names
}

function nameWithAlternatives(names: Map<JsonSchema, string>, schema: JsonSchema, name: string): void {
  names.set(schema, name)
  for (const alternative of (schema.oneOf ?? schema.anyOf ?? []) as readonly JsonSchema[]) {
    names.set(alternative, `${name}${toPascalWord(String(alternative.properties?.typeId?.enum?.[0]))}`)
  }
}

/** `edge-router` → `edgeRouter` */
function toCamelCase(name: string): string {
  return name.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase())
}

/** `PROCESS_MULTI` → `ProcessMulti` */
function toPascalWord(constant: string): string {
  return constant.toLowerCase().replace(/(^|_)([a-z])/g, (_, _line, letter: string) => letter.toUpperCase())
}
