// The content of the network file: its resources, in order, and their members. All of it follows from the definitions.
//
// A record of the file is a body of the API with names in place of ids.
import { listReferenceFields } from '../../definitions/model/columns.ts'
import { getCompiledResource } from '../../definitions/model/index.ts'
import type { AnyResource } from '../../definitions/resources/define.ts'
import { resources } from '../../definitions/resources/index.ts'
import { type AnyField, type Fields, toMemberName } from '../../definitions/schema/fields.ts'

/** A member of a record in the file. */
export interface FileMember {
  /** A reference is named for its record, without "Id": `configType`. */
  readonly name: string
  readonly fieldName: string
  /** The member of a request body that carries the field. */
  readonly bodyMember: string
  readonly field: AnyField
}

/** A resource whose records the file holds. */
export interface FileResource {
  readonly resource: AnyResource
  /** The members of every record; those that identify it come first. */
  readonly members: readonly FileMember[]
  /** By `typeId`: the members of the records of that variant besides these. */
  readonly variants: ReadonlyMap<string, readonly FileMember[]>
  /** The members that identify a record among those of its resource. */
  readonly identifiedBy: readonly FileMember[]
}

function compileFileResource(resource: AnyResource): FileResource {
  const identifying = resource.networkFile || []
  const isCreated = resource.verbs.includes('create')
  const fields = Object.entries(resource.fields).filter(
    ([name, field]) => identifying.includes(name) || (isCreated && isSetAndShown(field)),
  )
  const members = toFileMembers(Object.fromEntries(fields))
  const isIdentifying = ({ fieldName }: FileMember) => identifying.includes(fieldName)
  const identifiedBy = members.filter(isIdentifying)
  return {
    resource,
    members: [...identifiedBy, ...members.filter((member) => !isIdentifying(member))],
    variants: new Map(Object.entries(resource.variants ?? {}).map(([typeId, own]) => [typeId, toFileMembers(own)])),
    identifiedBy,
  }
}

/** Whether administrators set the field, and may read what they set. */
function isSetAndShown({ options: { access = 'write', secret } }: AnyField): boolean {
  return (access === 'write' || access === 'create') && !secret
}

/** The members of a structured value, or of a record. */
export function toFileMembers(fields: Fields): FileMember[] {
  return Object.entries(fields).map(([fieldName, field]) => {
    const bodyMember = toMemberName(fieldName, field)
    return { name: toFileName(bodyMember, field), fieldName, bodyMember, field }
  })
}

function toFileName(bodyMember: string, { kind }: AnyField): string {
  if (kind.name !== 'reference' || kind.reference?.choices) return bodyMember
  return kind.reference?.as ?? bodyMember.replace(/Id$/, '')
}

/** The members of one record. */
export function listMembers({ members, variants }: FileResource, typeId: unknown): readonly FileMember[] {
  const own = typeof typeId === 'string' ? variants.get(typeId) : undefined
  return own ? [...members, ...own] : members
}

/** Each resource after those that its records refer to; apart from that, in the order of the registry. */
function sortByReferences(unsorted: readonly AnyResource[]): AnyResource[] {
  const sorted = new Set<AnyResource>()
  const visit = (resource: AnyResource, path: readonly AnyResource[]) => {
    if (sorted.has(resource)) return
    if (path.includes(resource))
      throw new Error(`records refer to each other: ${path.map(({ plural }) => plural).join(' → ')}`)
    for (const plural of listTargets(resource)) {
      for (const target of unsorted) {
        if (target !== resource && isRecordOf(target, plural)) visit(target, [...path, resource])
      }
    }
    sorted.add(resource)
  }
  for (const resource of unsorted) visit(resource, [])
  return [...sorted]
}

/** The resources, by plural name, that records of a resource refer to. */
function listTargets(resource: AnyResource): string[] {
  const keyTargets = Object.values(resource.fields).flatMap(({ kind }) => kind.keyTarget ?? [])
  return [...listReferenceFields(resource).map(({ target }) => target), ...keyTargets]
}

/** Whether records of a resource are records of `plural`, too. */
export function isRecordOf({ plural }: AnyResource, ofPlural: string): boolean {
  return getCompiledResource(plural).withParent.includes(ofPlural)
}

/** In the order in which records can be created. */
export const fileResources: readonly FileResource[] = sortByReferences(
  (resources as readonly AnyResource[]).filter(({ networkFile }) => networkFile !== false),
).map(compileFileResource)
