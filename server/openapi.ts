// The OpenAPI documents of both APIs, made from the operations that are really registered.
import { STATUS_CODES } from 'node:http'
import type { Api } from '../src/config.ts'
import { errorCatalogue } from '../src/errors.ts'
import { resourceOf } from '../src/resources/index.ts'
import type { JsonSchema } from '../src/schema/json-schema.ts'
import { SESSION_HEADERS } from './dialects.ts'
import { BASE_PATHS } from './mount-points.ts'
import type { AnyOperation, Returns } from './operation.ts'
import { operations } from './operations.ts'
import { recordSchema } from './record-schema.ts'
import { version } from './version.ts'

const texts = new Map<Api, string>()

/** The document of an API as JSON text. */
export function openApiText(api: Api): string {
  let text = texts.get(api)
  if (!text) {
    text = `${JSON.stringify(openApiDocument(api), null, 2)}\n`
    texts.set(api, text)
  }
  return text
}

export function openApiDocument(api: Api) {
  const paths: Record<string, Record<string, unknown>> = {}
  for (const operation of operations.filter(({ apis }) => apis.includes(api))) {
    const path = operation.path.replace(/:(\w+)/g, '{$1}')
    paths[path] = { ...paths[path], [operation.method.toLowerCase()]: describe(operation) }
  }
  return {
    openapi: '3.0.3',
    info: { title: api === 'client' ? 'Edge Client API' : 'Edge Management API', version: version.version },
    servers: [{ url: BASE_PATHS[api] }],
    paths,
    components: {
      securitySchemes: { session: { type: 'apiKey', in: 'header', name: SESSION_HEADERS.native } },
      schemas: { error: errorSchema },
    },
  }
}

function describe(operation: AnyOperation) {
  const { id, topic, summary, access, query = {}, body, returns, isOwn } = operation
  const isPublic = 'public' in access
  const inPath = [...operation.path.matchAll(/:(\w+)/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }))
  const inQuery = Object.entries(query).map(([name, { schema, isRequired = false, isMultiple = false }]) => ({
    name,
    in: 'query',
    required: isRequired,
    schema: isMultiple ? { type: 'array', items: schema } : schema,
  }))
  const content = (type: string, schema: JsonSchema) => ({ content: { [type]: { schema } } })
  return {
    operationId: id,
    tags: [topic],
    summary,
    ...(isOwn ? { 'x-own': true } : {}),
    ...(isPublic ? { security: [] } : { security: [{ session: [] }], 'x-permission': access.permission }),
    parameters: [...inPath, ...inQuery],
    ...(body
      ? {
          requestBody: {
            required: body.isRequired,
            content: Object.fromEntries(
              body.contentTypes.map((type) => [
                type,
                { schema: type === 'application/json' ? body.schema : { type: 'string' } },
              ]),
            ),
          },
        }
      : {}),
    responses: {
      [successOf(returns)]: { description: summary, ...answerContent(returns, content) },
      ...Object.fromEntries(
        refusalStatuses(operation).map((status) => [
          status,
          { description: STATUS_CODES[status], ...content('application/json', { $ref: '#/components/schemas/error' }) },
        ]),
      ),
      default: {
        description: 'An error of the catalogue.',
        ...content('application/json', { $ref: '#/components/schemas/error' }),
      },
    },
  }
}

function successOf(returns: Returns): '200' | '201' {
  const isNew = returns.kind === 'created' || (returns.kind === 'record' && returns.isNew)
  return isNew ? '201' : '200'
}

/** The statuses by which callers of the operation have to expect to be refused. */
function refusalStatuses({ access, path, method, query, body, refusals, hasOneForm }: AnyOperation): number[] {
  const isPublic = 'public' in access
  const isChange = method !== 'GET'
  const canConflict = isChange && !isPublic && (method === 'DELETE' || body !== undefined)
  const statuses: Record<number, boolean> = {
    400: body !== undefined || Object.keys(query ?? {}).length > 0 || method === 'DELETE',
    // What a public operation is sent are credentials.
    401: !isPublic || body !== undefined,
    403: !isPublic && access.isForbidden === true,
    404: path.includes(':'),
    406: !isChange && !hasOneForm,
    409: canConflict,
    413: body !== undefined,
    415: body !== undefined,
    429: true,
    503: true,
    ...Object.fromEntries((refusals ?? []).map((status) => [status, true])),
  }
  return Object.keys(statuses)
    .map(Number)
    .filter((status) => statuses[status])
}

function answerContent(returns: Returns, content: (type: string, schema: JsonSchema) => object): object {
  switch (returns.kind) {
    case 'raw':
      return content(returns.contentType, { type: 'string' })
    case 'empty':
      return content('application/json', enveloped({ type: 'object' }))
    case 'data':
      return content('application/json', enveloped(returns.schema))
    case 'created':
      return content(
        'application/json',
        enveloped({ type: 'object', properties: { id: { type: 'string' }, _links: { type: 'object' } } }),
      )
    case 'record':
      return content('application/json', enveloped(recordSchema(resourceOf(returns.resource), returns.only)))
    case 'list':
      return content(
        'application/json',
        enveloped({ type: 'array', items: recordSchema(resourceOf(returns.resource), returns.only) }),
      )
  }
}

function enveloped(data: JsonSchema): JsonSchema {
  return { type: 'object', required: ['data', 'meta'], properties: { data, meta: { type: 'object' } } }
}

const errorSchema: JsonSchema = {
  type: 'object',
  required: ['error', 'meta'],
  properties: {
    error: {
      type: 'object',
      required: ['code', 'message', 'requestId'],
      properties: {
        code: {
          type: 'string',
          enum: [...new Set(Object.entries(errorCatalogue).map(([key, [, , sent]]) => sent ?? key))],
        },
        message: { type: 'string' },
        requestId: { type: 'string' },
        cause: { type: 'object' },
      },
    },
    meta: { type: 'object' },
  },
}
