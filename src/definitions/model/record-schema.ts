// The schema of a resource's records, for the documents: what follows from its fields, and what is computed.
import { type AnyResource, baseFields } from '../resources/define.ts'
import type { AnyField, Fields } from '../schema/fields.ts'
import { compact, entityReference, type JsonSchema, links, listOf, objectOf, text } from '../schema/json-schema.ts'

const referenceWithUrlName = objectOf({ ...entityReference.properties, urlName: text })

/** A role of a policy as people read it: with a name in place of an id. */
const roleDisplay = objectOf({ name: text, role: text })

/** Compiles the schema of the members that a record of the resource shows; of a resource with variants, those of each. */
export function compileRecordSchema(resource: AnyResource): JsonSchema {
  return resource.variants ? compileVariantsSchema(resource, resource.variants) : compileCommonSchema(resource)
}

/** The schema of records that show the members `only`, besides those of every record. */
export function limitRecordSchema(resource: AnyResource, only: readonly string[]): JsonSchema {
  return compileCommonSchema(resource, only)
}

function compileVariantsSchema(resource: AnyResource, variants: Readonly<Record<string, Fields>>): JsonSchema {
  const common = compileCommonSchema(resource)
  const alternatives = Object.entries(variants).map(([typeId, fields]) => {
    const own = compileFieldsSchema(fields)
    return {
      ...common,
      properties: {
        ...common.properties,
        typeId: { ...common.properties?.typeId, enum: [typeId] },
        ...own.properties,
      },
      required: [...(common.required ?? []), ...(own.required ?? [])],
    }
  })
  return { oneOf: alternatives, discriminator: { propertyName: 'typeId' } }
}

function compileCommonSchema(resource: AnyResource, only?: readonly string[]): JsonSchema {
  const fieldSchema = compileFieldsSchema(resource.fields)
  const required = new Set(fieldSchema.required)
  const named: Record<string, JsonSchema> = {}
  for (const [name, { kind, options }] of Object.entries(resource.fields)) {
    if (!isShown({ kind, options })) continue
    if (kind.reference?.as && kind.name === 'reference') {
      const schema = kind.reference.withUrlName ? referenceWithUrlName : entityReference
      named[kind.reference.as] = isNullable({ kind, options }) ? { ...schema, nullable: true } : schema
      if (isAlwaysShown({ kind, options })) required.add(kind.reference.as)
    }
    if (kind.roles) {
      named[`${name}Display`] = listOf(roleDisplay)
      required.add(`${name}Display`)
    }
  }
  for (const name of Object.keys({ ...resource.derived, ...resource.computed }))
    if (!resource.optionalMembers.includes(name)) required.add(name)
  const members = { ...fieldSchema.properties, ...named, ...resource.derived, ...resource.computed }
  const pickedMembers = Object.entries(members).filter(([name]) => name in baseFields || !only || only.includes(name))
  const properties: Record<string, JsonSchema> = { _links: links, ...Object.fromEntries(pickedMembers) }
  return {
    type: 'object',
    properties,
    required: ['_links', ...[...required].filter((name) => Object.hasOwn(properties, name))],
  }
}

/** The schema of an object that shows these fields; those that are left out while they are null need not be there. */
export function compileFieldsSchema(fields: Fields): JsonSchema {
  const shownFields = Object.entries(fields).filter(([, field]) => isShown(field))
  return {
    type: 'object',
    properties: Object.fromEntries(shownFields.map(([name, field]) => [name, compileFieldSchema(field)])),
    required: shownFields.filter(([, field]) => isAlwaysShown(field)).map(([name]) => name),
  }
}

function isShown({ options }: AnyField): boolean {
  return options.access !== 'internal' && !options.secret
}

function isAlwaysShown({ options }: AnyField): boolean {
  return !options.omitNull && options.compatibleEmpty !== 'absent'
}

function isNullable({ options }: AnyField): boolean {
  return (options.nullable === true && !options.omitNull) || options.compatibleEmpty === 'null'
}

function compileFieldSchema(field: AnyField): JsonSchema {
  const { kind, options } = field
  const { systemChoices = [] } = options
  return compact({
    ...(kind.members ? compileFieldsSchema(kind.members) : compact(kind.schema)),
    ...(systemChoices.length > 0 ? { enum: [...(kind.schema.enum ?? []), ...systemChoices] } : {}),
    ...(isNullable(field) ? { nullable: true } : {}),
    description: options.summary,
  })
}
