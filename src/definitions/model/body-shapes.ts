// The shapes of the bodies that create, replace and patch records of a resource.
import type { AnyResource } from '../resources/define.ts'
import { type BodyPurpose, type BodyShape, buildBodyShape } from '../schema/bodies.ts'
import type { Fields } from '../schema/fields.ts'

/** The shapes of each purpose by variant; a resource without variants has one, under `undefined`. */
export type BodyShapes = Readonly<Record<BodyPurpose, ReadonlyMap<string | undefined, BodyShape>>>

/** Compiles the bodies of a resource. */
export function compileBodyShapes(resource: AnyResource): BodyShapes {
  const variants = resource.variants ? Object.keys(resource.variants) : [undefined]
  const members = listRecordMembers(resource)
  const toShapes = (purpose: BodyPurpose) =>
    new Map(
      variants.map((typeId) => [
        typeId,
        buildBodyShape(purpose, collectInputFields(resource, purpose, typeId), members),
      ]),
    )
  return { create: toShapes('create'), replace: toShapes('replace'), patch: toShapes('patch') }
}

/** The names of all members that a record of the resource shows. */
export function listRecordMembers(resource: AnyResource): string[] {
  const members = ['_links', ...Object.keys(resource.derived), ...Object.keys(resource.computed)]
  for (const [name, field] of Object.entries(resource.fields)) {
    if (field.options.access === 'internal' || field.options.secret) continue
    members.push(name)
    if (field.kind.reference?.as && field.kind.name === 'reference') members.push(field.kind.reference.as)
    if (field.kind.roles) members.push(`${name}Display`)
  }
  return members
}

function collectInputFields(resource: AnyResource, purpose: BodyPurpose, typeId: string | undefined): Fields {
  const inputs = Object.fromEntries(
    Object.entries(resource.inputs).filter(([, { options }]) => purpose === 'create' || options.access !== 'create'),
  )
  const ofVariant = typeId === undefined ? {} : resource.variants?.[typeId]
  return { ...resource.fields, ...inputs, ...ofVariant }
}
