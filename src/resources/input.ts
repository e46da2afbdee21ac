// From request bodies to the values of a resource, whatever its fields, inputs and variants are.
import { errors, invalidError } from '../errors.ts'
import {
  applyFallbacks,
  assertObject,
  type BodyShape,
  type BodyTolerance,
  buildBodyShape,
  type Purpose,
  readBody,
} from '../schema/bodies.ts'
import type { Fields } from '../schema/fields.ts'
import { type JsonSchema, objectOf, text } from '../schema/json-schema.ts'
import { withSchemaNames } from '../schema/member-names.ts'
import type { AnyResource } from './define.ts'

const shapes = new WeakMap<AnyResource, Map<string, BodyShape>>()

/**
 * Reads a body that creates, replaces or patches a record; the result is keyed by field.
 * @param storedType the variant of the record that is changed, where the resource has variants
 * @throws COULD_NOT_PARSE_BODY, COULD_NOT_VALIDATE
 */
export function readInput(
  resource: AnyResource,
  purpose: Purpose,
  body: unknown,
  tolerance: BodyTolerance,
  storedType?: string,
): Record<string, unknown> {
  if (!resource.variants) return readBody(shapeOf(resource, purpose, undefined), body, tolerance)
  const named = tolerance.memberCase === 'any' ? withSchemaNames(discriminated, body) : body
  const typeId = variantOf(resource, purpose, named, storedType)
  const values = readBody(shapeOf(resource, purpose, typeId), body, tolerance)
  return foldVariant(resource, purpose, typeId, values)
}

/**
 * The schema of such a body, for documents: with variants, one alternative each. A new record names its variant, and so
 * fits one alternative; a change may leave it out, and then fits any.
 */
export function inputSchema(resource: AnyResource, purpose: Purpose): JsonSchema {
  if (!resource.variants) return shapeOf(resource, purpose, undefined).schema
  const alternatives = Object.keys(resource.variants).map((typeId) => {
    const { schema } = shapeOf(resource, purpose, typeId)
    return { ...schema, properties: { ...schema.properties, typeId: { ...schema.properties?.typeId, enum: [typeId] } } }
  })
  return purpose === 'create'
    ? { oneOf: alternatives, discriminator: { propertyName: 'typeId' } }
    : { anyOf: alternatives }
}

/** The names of all members that a record of the resource shows. */
export function recordMembers(resource: AnyResource): string[] {
  const members = ['_links', ...Object.keys(resource.derived), ...Object.keys(resource.computed)]
  for (const [name, field] of Object.entries(resource.fields)) {
    if (field.options.access === 'internal' || field.options.secret) continue
    members.push(name)
    if (field.kind.reference?.as && field.kind.name === 'reference') members.push(field.kind.reference.as)
    if (field.kind.roles) members.push(`${name}Display`)
  }
  return members
}

function shapeOf(resource: AnyResource, purpose: Purpose, typeId: string | undefined): BodyShape {
  let ofResource = shapes.get(resource)
  if (!ofResource) {
    ofResource = new Map()
    shapes.set(resource, ofResource)
  }
  const key = `${purpose} ${typeId}`
  let shape = ofResource.get(key)
  if (!shape) {
    shape = buildBodyShape(purpose, inputFields(resource, purpose, typeId), recordMembers(resource))
    ofResource.set(key, shape)
  }
  return shape
}

function inputFields(resource: AnyResource, purpose: Purpose, typeId: string | undefined): Fields {
  const inputs = Object.fromEntries(
    Object.entries(resource.inputs).filter(([, { options }]) => purpose === 'create' || options.access !== 'create'),
  )
  const ofVariant = typeId === undefined ? {} : resource.variants?.[typeId]
  return { ...resource.fields, ...inputs, ...ofVariant }
}

/** What a body of any variant has. */
const discriminated = objectOf({ typeId: text })

function variantOf(resource: AnyResource, purpose: Purpose, body: unknown, storedType: string | undefined): string {
  assertObject(body)
  const sent = body.typeId
  if (sent === undefined || sent === null) {
    if (purpose === 'create' || storedType === undefined) throw invalidError('typeId', 'is required')
    return storedType
  }
  if (typeof sent !== 'string' || !Object.hasOwn(resource.variants ?? {}, sent)) {
    const reason = `must be one of ${Object.keys(resource.variants ?? {}).join(', ')}`
    throw errors.COULD_NOT_PARSE_BODY({ field: 'typeId', reason, value: sent })
  }
  if (storedType !== undefined && sent !== storedType)
    throw invalidError('typeId', `cannot change: it is ${storedType}`, sent)
  return sent
}

/** Moves the variant's own members into `details`, which is how they are stored. */
function foldVariant(
  resource: AnyResource,
  purpose: Purpose,
  typeId: string,
  values: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const fields = resource.variants?.[typeId] ?? {}
  const own = Object.fromEntries(Object.entries(values).filter(([name]) => Object.hasOwn(fields, name)))
  const common = Object.fromEntries(Object.entries(values).filter(([name]) => !Object.hasOwn(fields, name)))
  if (purpose === 'patch') return Object.keys(own).length > 0 ? { ...common, details: own } : common
  return { ...common, typeId, details: applyFallbacks(fields, own) }
}
