// How the records of a resource are written as JSON, compiled from its fields: declared members only.
import type { AnyResource, AnyRow } from '../resources/define.ts'
import { type AnyField, type Fields, type ReferenceOptions, renderMember, renderMembers } from '../schema/fields.ts'
import { buildLinkWriter, type LinkWriter } from './links.ts'

/** How one record shows another. */
export interface Reference {
  readonly name: string
  /** JSON text of the entity reference. */
  readonly text: string
}

/** The referenced records by resource and id. */
export type ReferencesById = ReadonlyMap<string, ReadonlyMap<string, Reference>>

/** How the records of a resource are written. */
export interface RecordPlan {
  readonly links: LinkWriter
  /** The members that follow from stored fields, as marked text (`JsonForm`), each with a comma before it, or empty if left out. */
  readonly members: readonly MemberWriter[]
  readonly targets: readonly ReferencedResource[]
  /** The members that are computed from other tables. */
  readonly derived: readonly ComputedMember[]
  /** The members that depend on the caller or the moment. */
  readonly computed: readonly ComputedMember[]
}

/** A member whose value code computes. */
export interface ComputedMember {
  readonly name: string
  /** The text before its value: a comma, its name and a colon. In one piece, because text of many pieces is slow to send. */
  readonly key: string
}

/** The members that a definition declares, by name. */
function listComputedMembers(declared: Readonly<Record<string, unknown>>): readonly ComputedMember[] {
  return Object.keys(declared).map((name) => ({ name, key: toKey(name) }))
}

function toKey(name: string): string {
  return `,"${name}":`
}

type MemberWriter = (row: AnyRow, references: ReferencesById) => string

/** A field whose values name records of another resource. */
interface ReferencedResource {
  readonly resource: string
  idsOf(row: AnyRow): readonly string[]
}

/** Compiles how the records of a resource are written. */
export function compileRecordPlan(resource: AnyResource): RecordPlan {
  const members: MemberWriter[] = []
  const targets: ReferencedResource[] = []
  for (const [name, field] of Object.entries(resource.fields)) {
    if (field.options.access === 'internal' || field.options.secret) continue
    members.push(compileFieldMember(name, field))
    const { target, reference, roles } = field.kind
    if (target && reference?.as && field.kind.name === 'reference') {
      members.push(compileReferenceMember(name, target, reference, field.options.omitNull === true))
      targets.push({ resource: target, idsOf: (row) => (row[name] === null ? [] : [row[name] as string]) })
    }
    if (target && roles) {
      members.push(compileRolesDisplay(name, target))
      targets.push({ resource: target, idsOf: (row) => parseRoleIds(row[name] as string) })
    }
  }
  if (resource.variants) members.push(compileVariantMembers(resource.variants))
  const [derived, computed] = [listComputedMembers(resource.derived), listComputedMembers(resource.computed)]
  return { links: buildLinkWriter(resource), members, targets, derived, computed }
}

function compileFieldMember(name: string, field: AnyField): MemberWriter {
  const key = toKey(name)
  return (row) => renderMember(key, field, row[name])
}

function compileReferenceMember(
  name: string,
  target: string,
  { as, withUrlName }: ReferenceOptions,
  isOmittable: boolean,
): MemberWriter {
  const key = `,"${as}":`
  const urlName = `,"urlName":"${target}"}`
  return (row, references) => {
    if (isOmittable && row[name] === null) return ''
    const text = references.get(target)?.get(row[name] as string)?.text ?? 'null'
    return key + (withUrlName && text !== 'null' ? text.slice(0, -1) + urlName : text)
  }
}

/** `…RolesDisplay`: each role with a name for people; an `@id` whose record is gone is left out. */
function compileRolesDisplay(name: string, target: string): MemberWriter {
  return (row, references) => {
    const display = (JSON.parse(row[name] as string) as string[]).flatMap((role) => {
      if (role.startsWith('#')) return [{ name: role, role }]
      const record = references.get(target)?.get(role.slice(1))
      return record ? [{ name: `@${record.name}`, role }] : []
    })
    return `,"${name}Display":${JSON.stringify(display)}`
  }
}

function parseRoleIds(stored: string): string[] {
  if (!stored.includes('"@')) return []
  return (JSON.parse(stored) as string[]).flatMap((role) => (role.startsWith('@') ? [role.slice(1)] : []))
}

/** The members of a record's variant, which are stored together as `details`. */
function compileVariantMembers(variants: Readonly<Record<string, Fields>>): MemberWriter {
  const shownFields = new Map(
    Object.entries(variants).map(([typeId, fields]) => [
      typeId,
      Object.fromEntries(
        Object.entries(fields).filter(([, { options }]) => !options.secret && options.access !== 'internal'),
      ),
    ]),
  )
  return (row) =>
    renderMembers(shownFields.get(row.typeId as string) ?? {}, JSON.parse(row.details as string) as ObjectValue)
}

type ObjectValue = Readonly<Record<string, unknown>>
