// The shapes of records in the network file: like request bodies, but every member is read, and references are named as in the file.
import { type BodyShape, buildBodyShape } from '../schema/bodies.ts'
import type { AnyField, Fields } from '../schema/fields.ts'
import { type FileMember, type FileResource, fileResources, listMembers } from './file-resources.ts'

type FilePurpose = 'create' | 'patch'

const shapes = new Map<FileResource, Readonly<Record<FilePurpose, ReadonlyMap<unknown, BodyShape>>>>(
  fileResources.map((fileResource) => [
    fileResource,
    { create: compileShapes(fileResource, 'create'), patch: compileShapes(fileResource, 'patch') },
  ]),
)

/** The shape of a record; `typeId` matters for a resource with variants. */
export function getFileShape(fileResource: FileResource, purpose: FilePurpose, typeId: unknown): BodyShape {
  const ofPurpose = shapes.get(fileResource)?.[purpose]
  const shape = ofPurpose?.get(fileResource.variants.size > 0 ? typeId : undefined) ?? ofPurpose?.get(undefined)
  if (!shape) throw new Error(`${fileResource.resource.plural} have no shape in the network file`)
  return shape
}

/** By variant. Under `undefined`, for a resource with variants, there is the shape for a record without a valid one. */
function compileShapes(fileResource: FileResource, purpose: FilePurpose): ReadonlyMap<unknown, BodyShape> {
  const variants = [undefined, ...fileResource.variants.keys()]
  return new Map(
    variants.map((typeId) => [typeId, buildBodyShape(purpose, toFields(listMembers(fileResource, typeId)))]),
  )
}

/** The fields of members. Those that only a new record can set are read, too, so that a change of them is refused. */
function toFields(members: readonly FileMember[]): Fields {
  return Object.fromEntries(
    members.map(({ name, fieldName, field }) => {
      const options = { ...field.options, input: name, access: 'write' as const }
      return [fieldName, { ...field, options } as AnyField]
    }),
  )
}
