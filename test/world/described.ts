// Checks every response of the controllers under test against the OpenAPI documents and the public contract: a test that
// receives one that contradicts them fails.

import { pipeline, Readable, Transform } from 'node:stream'
import { gunzipSync } from 'node:zlib'
import type { Ajv, ValidateFunction } from 'ajv'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { buildOpenApiDocument } from '../../server/openapi/openapi.ts'
import { operations as registered } from '../../server/operations/operations.ts'
import { isServed } from '../../server/requests/requests.ts'
import { createSchemaCompiler } from '../../src/definitions/schema/validate.ts'
import type { Api } from '../../src/settings/listener-settings.ts'
import { recordContradiction, recordFault } from './faults.ts'
import { contractDifferences } from './public-contract.ts'

type Described = Readonly<Record<string, unknown>>

interface DescribedResponse {
  readonly headers?: Readonly<Record<string, unknown>>
  readonly content?: Readonly<Record<string, { readonly schema: Described }>>
}

interface DescribedOperation {
  readonly responses: Readonly<Record<string, DescribedResponse>>
}

/** Looks at a response before it is sent; the hook of applications under test. */
export async function checkResponse(request: FastifyRequest, reply: FastifyReply, payload: unknown): Promise<unknown> {
  if (reply.statusCode >= 500) {
    recordFault(`${request.method} ${request.url} returned ${reply.statusCode}: ${String(payload).slice(0, 600)}`)
  }
  // The documents of the APIs do not describe the responses to offline commands.
  if (request.state?.caller.kind === 'local-operator' || !isDescribed(request)) return payload
  if (payload instanceof Readable) return observed(payload, (bytes) => noteContradictions(request, reply, bytes))
  noteContradictions(request, reply, Buffer.from((payload ?? '') as string | Buffer))
  return payload
}

/** Whether a document says something of the response: not of operations that tests make up, and not of APIs that a listener lacks. */
function isDescribed({ raw, state }: FastifyRequest): boolean {
  const { operation, api } = state?.route ?? {}
  return (
    operation !== undefined && api !== undefined && isServed(raw, api) && documentOf(api).operations.has(operation.id)
  )
}

/** The same stream, whose bytes are looked at once they have passed whole. */
function observed(stream: Readable, look: (bytes: Buffer) => void): Readable {
  const pieces: Buffer[] = []
  const passed = new Transform({
    transform(piece: Buffer, _encoding, callback) {
      pieces.push(piece)
      callback(null, piece)
    },
    flush(callback) {
      look(Buffer.concat(pieces))
      callback()
    },
  })
  // Each is destroyed with the other. What failed is for the application.
  pipeline(stream, passed, () => {})
  return passed
}

function noteContradictions(request: FastifyRequest, reply: FastifyReply, bytes: Buffer): void {
  const text = (reply.getHeader('content-encoding') === 'gzip' ? gunzipSync(bytes) : bytes).toString()
  const { operation, api } = request.state?.route ?? {}
  const contentType = String(reply.getHeader('content-type'))
  const matches = operation && api ? differences(api, operation.id, reply.statusCode, contentType, text) : []
  if (operation && api && contentType === 'application/json') {
    const path = operation.path.replace(/:(\w+)/g, '{$1}')
    const fromContract = contractDifferences(
      api,
      { method: operation.method, path, status: reply.statusCode, dialect: request.state?.dialect ?? 'native' },
      JSON.parse(text),
    )
    matches.push(...fromContract.map((difference) => `the public contract: ${difference}`))
  }
  const sentence = `${request.method} ${request.url} returned ${reply.statusCode}`
  for (const difference of matches) recordContradiction(`${sentence}: ${difference}\n  ${text.slice(0, 600)}`)
}

/** How a response differs from what the document says of its operation. */
export function differences(api: Api, id: string, status: number, contentType: string, text: string): string[] {
  const described = documentOf(api).operations.get(id)
  // Operations that tests make up.
  if (!described) return []
  // Statuses that are told about no operation: requests that are cut off, and faults.
  if (status === 408 || status === 500) return []
  const response = described.responses[status]
  if (!response) return [`the document of ${id} does not name the status`]
  // It has neither a body nor a type.
  if (status === 304) return text === '' ? [] : ['the response has a body']
  const content = response.content?.[contentType]
  if (!content) return [`the document of ${id} does not name the content type ${contentType}`]
  if (contentType !== 'application/json') return []
  const check = validatorOf(api, content.schema)
  const value: unknown = JSON.parse(text)
  if (check(value)) return []
  return (check.errors ?? []).map(
    ({ instancePath, message, params, data }) =>
      `${instancePath || '/'} ${message} ${JSON.stringify(params)}, it is ${JSON.stringify(data)?.slice(0, 120)}`,
  )
}

interface Document {
  readonly operations: ReadonlyMap<string, DescribedOperation>
  readonly compiler: Ajv
}

const documents = new Map<Api, Document>()
const validators = new WeakMap<Described, ValidateFunction>()

function documentOf(api: Api): Document {
  let document = documents.get(api)
  if (!document) {
    const { paths, components } = buildOpenApiDocument(api, registered)
    const operations = Object.values(paths)
      .flatMap((methods) => Object.values(methods))
      .map(
        (operation) => [(operation as { operationId: string }).operationId, operation as DescribedOperation] as const,
      )
    const compiler = createSchemaCompiler()
    compiler.addSchema({ $id: DOCUMENT, components: closed(components) as object })
    document = { operations: new Map(operations), compiler }
    documents.set(api, document)
  }
  return document
}

const DOCUMENT = 'https://document.test/'

function validatorOf(api: Api, schema: Described): ValidateFunction {
  let check = validators.get(schema)
  if (!check) {
    check = documentOf(api).compiler.compile(closed(schema) as object)
    validators.set(schema, check)
  }
  return check
}

/** The schema under which a member that is not described is a contradiction, too. */
function closed(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closed)
  if (typeof schema !== 'object' || schema === null) return schema
  const copy = Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, closed(value)]))
  if (typeof copy.$ref === 'string') return { $ref: DOCUMENT + copy.$ref }
  if (isSchemaOfMembers(schema)) return { additionalProperties: false, ...copy }
  return copy
}

function isSchemaOfMembers(schema: object): boolean {
  return 'type' in schema && schema.type === 'object' && 'properties' in schema
}
