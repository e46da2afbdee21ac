// The shapes of records in the network file: like request bodies, but every member is read, and references are named as in the file.
import { type BodyShape, buildBodyShape } from '../../definitions/schema/bodies.ts'
import type { AnyField, Fields } from '../../definitions/schema/fields.ts'
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
    variants.map((typeId) => [
      typeId,
      buildBodyShape(purpose, toFields(fileResource, listMembers(fileResource, typeId))),
    ]),
  )
}

/**
 * The fields of members. Those that only a new record can set are read, too, so that a change of them is refused. Null can
 * identify a record, such as the settings of all controllers.
 */
function toFields({ identifiedBy }: FileResource, members: readonly FileMember[]): Fields {
  return Object.fromEntries(
    members.map((member) => {
      const { name, fieldName, field } = member
      const isNullIdentifier = field.options.nullable === true && identifiedBy.includes(member)
      const options = {
        ...field.options,
        ...{ input: name, access: 'write' as const },
        ...(isNullIdentifier ? { acceptsNull: true as const } : {}),
      }
      return [fieldName, { ...field, kind: withWholeValues(field), options } as AnyField]
    }),
  )
}

/** The kind without what null does in a patch of the API: in the file a map is the whole value, not a change of it. */
function withWholeValues({ kind }: AnyField): AnyField['kind'] {
  const { normalize } = kind
  return normalize ? { ...kind, normalize: (value) => normalize(value, 'replace') } : kind
}
