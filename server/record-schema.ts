// The schema of a resource's records, for the documents: what follows from its fields, and what is computed.
import { type AnyResource, baseFields } from '../src/resources/define.ts'
import { fieldsSchema } from '../src/resources/input.ts'
import type { Fields } from '../src/schema/fields.ts'
import { entityReference, type JsonSchema, links, listOf, objectOf, text } from '../src/schema/json-schema.ts'

const referenceWithUrlName = objectOf({ ...entityReference.properties, urlName: text })

/** A role of a policy as people read it: with a name in place of an id. */
const roleDisplay = objectOf({ name: text, role: text })

/** The members that a record of the resource shows; of a resource with variants, those of each. With `only`, some of them. */
export function recordSchema(resource: AnyResource, only?: readonly string[]): JsonSchema {
  const { variants } = resource
  const common = oneRecordSchema(resource, only)
  if (!variants) return common
  const ofVariant = (details: Fields) => ({
    ...common,
    properties: { ...common.properties, ...fieldsSchema(details).properties },
  })
  return { oneOf: Object.values(variants).map(ofVariant), discriminator: { propertyName: 'typeId' } }
}

function oneRecordSchema(resource: AnyResource, only?: readonly string[]): JsonSchema {
  const shown = Object.fromEntries(
    Object.entries(resource.fields).filter(([, field]) => field.options.access !== 'internal' && !field.options.secret),
  )
  const named: Record<string, JsonSchema> = {}
  for (const [name, { kind }] of Object.entries(shown)) {
    if (kind.reference?.as)
      named[kind.reference.as] = kind.reference.withUrlName ? referenceWithUrlName : entityReference
    if (kind.roles) named[`${name}Display`] = listOf(roleDisplay)
  }
  const own = Object.fromEntries(
    Object.entries(shown).map(([name, { kind, options }]) => {
      const schema = kind.members ? fieldsSchema(kind.members) : kind.schema
      return [name, { ...schema, ...(options.nullable ? { nullable: true } : {}), description: options.summary }]
    }),
  )
  const members = { ...own, ...named, ...resource.derived, ...resource.live }
  const kept = Object.entries(members).filter(([name]) => name in baseFields || !only || only.includes(name))
  return { type: 'object', properties: { _links: links, ...Object.fromEntries(kept) } }
}
