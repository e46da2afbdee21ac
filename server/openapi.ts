// The OpenAPI documents of both APIs, made from the operations that are really registered.
import type { Api } from '../src/config.ts'
import { errorCatalogue } from '../src/errors.ts'
import type { AnyResource } from '../src/resources/define.ts'
import { resourceOf } from '../src/resources/index.ts'
import { fieldsSchema } from '../src/resources/input.ts'
import type { JsonSchema } from '../src/schema/json-schema.ts'
import { SESSION_HEADERS } from './dialects.ts'
import { BASE_PATHS } from './mount-points.ts'
import type { AnyOperation, Returns } from './operation.ts'
import { operations } from './operations.ts'
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
      [returns.kind === 'created' ? '201' : '200']: { description: summary, ...answerContent(returns, content) },
      default: {
        description: 'An error of the catalogue.',
        ...content('application/json', { $ref: '#/components/schemas/error' }),
      },
    },
  }
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
      return content('application/json', enveloped(recordSchema(resourceOf(returns.resource))))
    case 'list':
      return content(
        'application/json',
        enveloped({ type: 'array', items: recordSchema(resourceOf(returns.resource)) }),
      )
  }
}

function enveloped(data: JsonSchema): JsonSchema {
  return { type: 'object', required: ['data', 'meta'], properties: { data, meta: { type: 'object' } } }
}

/** The members that a record of the resource shows. */
function recordSchema(resource: AnyResource): JsonSchema {
  const shown = Object.fromEntries(
    Object.entries(resource.fields).filter(([, field]) => field.options.access !== 'internal' && !field.options.secret),
  )
  const named: Record<string, JsonSchema> = {}
  for (const [name, { kind }] of Object.entries(shown)) {
    if (kind.reference?.as) named[kind.reference.as] = referenceSchema
    if (kind.roles) named[`${name}Display`] = { type: 'array', items: { type: 'object' } }
  }
  const own = Object.fromEntries(
    Object.entries(shown).map(([name, { kind, options }]) => {
      const schema = kind.members ? fieldsSchema(kind.members) : kind.schema
      return [name, { ...schema, ...(options.nullable ? { nullable: true } : {}), description: options.summary }]
    }),
  )
  return {
    type: 'object',
    properties: { _links: { type: 'object' }, ...own, ...named, ...resource.derived, ...resource.live },
  }
}

const referenceSchema: JsonSchema = {
  type: 'object',
  properties: {
    _links: { type: 'object' },
    entity: { type: 'string' },
    id: { type: 'string' },
    name: { type: 'string' },
  },
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
