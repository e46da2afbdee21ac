// From request bodies to the values of a resource, whatever its fields, inputs and variants are.
import { errors, invalidError } from '../../foundation/errors.ts'
import type { AnyResource } from '../resources/define.ts'
import {
  applyFallbacks,
  assertObject,
  type BodyPurpose,
  type BodyShape,
  type BodyTolerance,
  readBody,
} from '../schema/bodies.ts'
import { type JsonSchema, objectOf, text } from '../schema/json-schema.ts'
import { withSchemaNames } from '../schema/member-names.ts'
import { getCompiledResource } from './index.ts'

/**
 * Reads a body that creates, replaces or patches a record; the result is keyed by field.
 * @param storedType the variant of the record that is changed, if the resource has variants
 * @throws COULD_NOT_PARSE_BODY, COULD_NOT_VALIDATE
 */
export function readInput(
  resource: AnyResource,
  purpose: BodyPurpose,
  body: unknown,
  tolerance: BodyTolerance,
  storedType?: string,
): Record<string, unknown> {
  if (!resource.variants) return readBody(getShape(resource, purpose), body, tolerance)
  const named = tolerance.memberCase === 'any' ? withSchemaNames(discriminated, body) : body
  assertObject(named)
  const typeId = readVariant(resource, purpose, named, storedType)
  const values = readBody(getShape(resource, purpose, typeId), { ...named, typeId }, tolerance)
  return foldVariant(resource, purpose, typeId, values)
}

/**
 * The schema of such a body, for documents: with variants, one alternative each. A new record names its variant, and so
 * fits one alternative; a change may leave it out, and then fits any.
 */
export function buildInputSchema(resource: AnyResource, purpose: BodyPurpose): JsonSchema {
  if (!resource.variants) return getShape(resource, purpose).schema
  const alternatives = Object.keys(resource.variants).map((typeId) => {
    const { schema } = getShape(resource, purpose, typeId)
    return { ...schema, properties: { ...schema.properties, typeId: { ...schema.properties?.typeId, enum: [typeId] } } }
  })
  return purpose === 'create'
    ? { oneOf: alternatives, discriminator: { propertyName: 'typeId' } }
    : { anyOf: alternatives }
}

function getShape(resource: AnyResource, purpose: BodyPurpose, typeId?: string): BodyShape {
  const shape = getCompiledResource(resource.plural).bodyShapes[purpose].get(typeId)
  if (!shape) throw new Error(`${resource.plural} has no variant ${typeId}`)
  return shape
}

/** The member that a body of every variant has. */
const discriminated = objectOf({ typeId: text })

const BODY_SUFFIX = /(Create|Update|Patch)$/

/** The type that a body names, by the name of its shape in the public contract too, which some generated clients send. */
function readVariant(
  resource: AnyResource,
  purpose: BodyPurpose,
  body: Readonly<Record<string, unknown>>,
  storedType: string | undefined,
): string {
  const typeId = typeof body.typeId === 'string' ? toVariant(resource, body.typeId) : body.typeId
  if (typeId === undefined || typeId === null) {
    if (purpose === 'create' || storedType === undefined) throw invalidError('typeId', 'is required')
    return storedType
  }
  if (typeof typeId !== 'string' || !Object.hasOwn(resource.variants ?? {}, typeId)) {
    const reason = `must be one of ${Object.keys(resource.variants ?? {}).join(', ')}`
    throw errors.COULD_NOT_PARSE_BODY({ field: 'typeId', reason, value: typeId })
  }
  if (storedType !== undefined && typeId !== storedType)
    throw invalidError('typeId', `cannot change: it is ${storedType}`, typeId)
  return typeId
}

function toVariant({ variantBodies }: AnyResource, name: string): string {
  const start = name.replace(BODY_SUFFIX, '')
  return start !== name && Object.hasOwn(variantBodies, start) ? (variantBodies[start] as string) : name
}

/** Moves the variant's own members into `details`, which is how they are stored. */
export function foldVariant(
  resource: AnyResource,
  purpose: BodyPurpose,
  typeId: string,
  values: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const fields = resource.variants?.[typeId] ?? {}
  const own = Object.fromEntries(Object.entries(values).filter(([name]) => Object.hasOwn(fields, name)))
  const common = Object.fromEntries(Object.entries(values).filter(([name]) => !Object.hasOwn(fields, name)))
  if (purpose === 'patch') return Object.keys(own).length > 0 ? { ...common, details: own } : common
  return { ...common, typeId, details: applyFallbacks(fields, own) }
}
