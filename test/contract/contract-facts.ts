// The public contract as facts: one short line for each parameter, member and status of each operation, comparable as text.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { JsonSchema } from '../../src/definitions/schema/json-schema.ts'
import type { ContractApi } from '../world/public-contract.ts'

/** `METHOD /path` with every parameter as `{}` → what is known of the operation. */
export type Facts = ReadonlyMap<string, ReadonlySet<string>>

type Reference = string
type Shape = JsonSchema & { readonly allOf?: readonly (Shape | Reference)[] }

type Parameter = Omit<Shape, 'required'> & {
  readonly name: string
  readonly in: 'query' | 'body' | 'path' | 'header'
  readonly required?: boolean
  readonly schema?: Shape | Reference
}

interface ContractOperation {
  readonly method: string
  readonly path: string
  /** Null if the contract does not name it. */
  readonly id: string | null
  readonly session: boolean
  /** Content types, if others than JSON are taken or sent. */
  readonly consumes?: readonly string[]
  readonly produces?: readonly string[]
  readonly params: readonly Parameter[]
  readonly responses: Readonly<Record<string, Shape | Reference | null>>
}

interface Contract {
  readonly client: { readonly operations: readonly ContractOperation[] }
  readonly management: { readonly operations: readonly ContractOperation[] }
  readonly records: Readonly<Record<string, Shape>>
}

// A copy of the public contract of the release that the documents describe: facts only, no prose.
const contract = JSON.parse(readFileSync(join(import.meta.dirname, '../fixtures/contract.json'), 'utf8')) as Contract

function nameOf(method: string, path: string): string {
  return `${method.toUpperCase()} ${path.replace(/\{\w+\}/g, '{}').replace(/(?<=.)\/$/, '')}`
}

/** The facts that the contract states. */
export function contractFacts(api: ContractApi): Facts {
  return new Map(
    contract[api].operations.map(({ id, method, path, params, responses, session, consumes, produces }) => {
      const facts = new Set<string>([session ? 'needs a session' : 'open to everyone'])
      if (id) facts.add(`id ${id}`)
      addMediaTypes(facts, 'takes', consumes ?? [])
      addMediaTypes(facts, 'sends', produces ?? [])
      for (const parameter of params) {
        if (parameter.in === 'header') facts.add(`header ${parameter.name}: ${parameter.type}`)
        if (parameter.in === 'query') addQuery(facts, parameter.name, parameter as Shape, parameter.required)
        if (parameter.in === 'body') addMembers(facts, 'body', resolved(parameter.schema ?? (parameter as Shape)))
      }
      for (const [status, response] of Object.entries(responses)) {
        facts.add(`status ${status}`)
        const content = response && status.startsWith('2') ? findContent(resolved(response)) : undefined
        if (content) addMembers(facts, 'data', resolved(content as Shape))
      }
      return [nameOf(method, path), facts]
    }),
  )
}

/** A shape with what it refers to put in; a shape that contains itself ends there. */
function resolved(shape: Shape | Reference, within: readonly string[] = []): Shape {
  if (typeof shape === 'string') {
    const name = shape.slice(1)
    return within.includes(name) ? {} : resolved(contract.records[name] ?? {}, [...within, name])
  }
  const parts = (shape.allOf ?? []).map((part) => resolved(part, within))
  const properties = Object.assign({}, ...parts.map((part) => part.properties), shape.properties) as Record<
    string,
    Shape
  >
  const required = [shape, ...parts].flatMap((part) => part.required ?? [])
  return {
    ...Object.assign({}, ...parts),
    ...shape,
    ...(Object.keys(properties).length === 0
      ? {}
      : {
          type: 'object',
          required,
          properties: Object.fromEntries(
            Object.entries(properties).map(([name, member]) => [name, resolved(member, within)]),
          ),
        }),
    ...(shape.items ? { items: resolved(shape.items as Shape, within) } : {}),
  }
}

/** The facts that one of our documents states. */
export function documentFacts({ paths, components }: Documented): Facts {
  const facts = new Map<string, ReadonlySet<string>>()
  for (const [path, methods] of Object.entries(paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      facts.set(nameOf(method, path), factsOf(withoutReferences(operation, components.schemas) as Described))
    }
  }
  return facts
}

interface Documented {
  readonly paths: Readonly<Record<string, Readonly<Record<string, unknown>>>>
  readonly components: { readonly schemas: Readonly<Record<string, unknown>> }
}

/** Part of a document with the components that it refers to put in. */
export function withoutReferences(part: unknown, schemas: Readonly<Record<string, unknown>>): unknown {
  if (Array.isArray(part)) return part.map((one) => withoutReferences(one, schemas))
  if (typeof part !== 'object' || part === null) return part
  if ('$ref' in part) return withoutReferences(schemas[String(part.$ref).split('/').at(-1) ?? ''], schemas)
  return Object.fromEntries(Object.entries(part).map(([key, value]) => [key, withoutReferences(value, schemas)]))
}

/** Content types without their parameters; JSON goes without saying. */
function addMediaTypes(facts: Set<string>, verb: 'takes' | 'sends', types: readonly string[]): void {
  for (const type of types) if (!type.startsWith('application/json')) facts.add(`${verb} ${type.replace(/;.*/, '')}`)
}

interface Described {
  readonly operationId: string
  readonly security: readonly unknown[]
  readonly parameters: readonly { name: string; in: string; required: boolean; schema: JsonSchema }[]
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: JsonSchema }>> }
  readonly responses: Readonly<Record<string, { content?: Readonly<Record<string, { readonly schema: JsonSchema }>> }>>
}

function factsOf({ operationId, security, parameters, requestBody, responses }: Described): Set<string> {
  const facts = new Set<string>([security.length > 0 ? 'needs a session' : 'open to everyone', `id ${operationId}`])
  addMediaTypes(facts, 'takes', Object.keys(requestBody?.content ?? {}))
  for (const { name, in: place, required, schema } of parameters) {
    if (place === 'header') facts.add(`header ${name}: ${typeOf(schema)}`)
    if (place === 'query') addQuery(facts, name, schema, required)
  }
  const body = requestBody?.content['application/json']
  if (requestBody) addMembers(facts, 'body', body?.schema ?? { type: 'string' })
  for (const [status, { content = {} }] of Object.entries(responses)) {
    if (status !== 'default') facts.add(`status ${status}`)
    const response = findContent(content['application/json']?.schema ?? {})
    if (response && status.startsWith('2')) addMembers(facts, 'data', response)
    if (status.startsWith('2')) addMediaTypes(facts, 'sends', Object.keys(content))
  }
  return facts
}

/** The content of a response: the contents of the envelope, or all of it if it has none. */
function findContent({ properties, ...schema }: JsonSchema): JsonSchema | undefined {
  if (properties && !('meta' in properties)) return { properties, ...schema }
  return properties?.data
}

function addQuery(facts: Set<string>, name: string, schema: JsonSchema, isRequired = false): void {
  facts.add(`query ${name}: ${typeOf(schema)}${isRequired ? ', required' : ''}`)
  addLimits(facts, `query ${name}`, schema)
}

const LIMITS = ['format', 'minLength', 'maxLength', 'minimum', 'maximum', 'minItems', 'maxItems', 'pattern'] as const

/** Adds the limits of a value that has the right type. */
function addLimits(facts: Set<string>, path: string, schema: JsonSchema): void {
  for (const limit of LIMITS) if (schema[limit] !== undefined) facts.add(`${path} ${limit} ${schema[limit]}`)
  const values = (schema.enum as readonly unknown[] | undefined)?.filter((value) => value !== null)
  if (values) facts.add(`${path} is one of ${values.map(String).sort().join(', ')}`)
}

/** A line for each member at any depth; of alternatives, of all of them. */
function addMembers(facts: Set<string>, path: string, schema: JsonSchema): void {
  const alternatives = (schema.oneOf ?? schema.anyOf) as readonly JsonSchema[] | undefined
  if (alternatives) {
    for (const alternative of alternatives) addMembers(facts, path, alternative)
    return
  }
  facts.add(`${path}: ${typeOf(schema)}`)
  // Values that are sent are compared with the contract whenever a test receives them; accepted ones are known from documents only.
  const isTaken = path.startsWith('body')
  if (isTaken && schema.nullable === true) facts.add(`${path} may be null`)
  if (isTaken) addLimits(facts, path, schema)
  if (schema.items) addMembers(facts, `${path}[]`, schema.items)
  for (const [name, member] of Object.entries(schema.properties ?? {})) {
    // Links are a map by names that each record has its own of.
    if (name === '_links') facts.add(`${path}._links: object`)
    else addMembers(facts, `${path}.${name}`, member)
  }
  for (const name of schema.required ?? []) facts.add(`${path}.${name} is required`)
}

function typeOf({ type, properties, additionalProperties, items, ...others }: JsonSchema): string {
  const [named] = [type].flat().filter((one) => one !== 'null')
  if (named) return named
  if (properties || additionalProperties) return 'object'
  if (items) return 'array'
  return others.enum ? 'string' : 'anything'
}
