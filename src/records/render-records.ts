// From rows to the JSON that leaves: declared fields only, JSON columns pasted as they are stored.
import type { ReadContext } from '../context.ts'
import type { AnyResource, AnyRow, ComputedInput } from '../resources/define.ts'
import type { AnyField, ReferenceOptions } from '../schema/fields.ts'
import { buildLinkWriter } from './links.ts'
import { toJsonText } from './raw-json.ts'
import type { Reference } from './reference-cache.ts'

/**
 * A record as far as it looks the same to everyone and at any time: what is left are its live members, and the closing
 * brace.
 */
export interface CachedRecord {
  readonly n: number
  readonly id: string
  /** JSON in UTF-8 from the opening brace on: as bytes, because lists then copy it instead of building and encoding text. */
  readonly bytes: Buffer
  /** Where, in `bytes`, the members after `_links` begin; each has a comma before it. */
  readonly membersAt: number
  /** The columns that live members are computed from. */
  readonly facts: ComputedInput
}

/** Makes records ready, in the order of their rows. */
export async function renderCachedRecords(
  context: ReadContext,
  resource: AnyResource,
  rows: readonly AnyRow[],
): Promise<CachedRecord[]> {
  if (rows.length === 0) return []
  const plan = getRecordPlan(resource)
  const named = await loadReferences(context, plan, rows)
  const derived = await resource.derive?.(context, rows)
  return rows.map((row, at) => {
    const links = `{"_links":${plan.links(row)}`
    const bytes = Buffer.from(links + renderMembers(plan, row, named, derived?.[at]))
    return { n: row.n, id: row.id, bytes, membersAt: Buffer.byteLength(links), facts: toComputedInput(resource, row) }
  })
}

function toComputedInput(resource: AnyResource, row: AnyRow): ComputedInput {
  const facts: Record<string, string | number | null> = {}
  for (const name of resource.computedFrom) facts[name] = row[name] ?? null
  return { id: row.id, ...facts }
}

/** How the members of a resource's records are written, made once. */
interface RecordPlan {
  readonly links: (row: AnyRow) => string
  readonly members: readonly Member[]
  readonly targets: readonly ReferencedResource[]
  readonly derived: readonly string[]
  readonly variants: AnyResource['variants']
}

type Member = (row: AnyRow, named: ReferencesById) => string

/** A field whose values name records of another resource. */
interface ReferencedResource {
  readonly resource: string
  idsOf(row: AnyRow): readonly string[]
}

/** The referenced records by resource and id. */
type ReferencesById = ReadonlyMap<string, ReadonlyMap<string, Reference>>

const plans = new WeakMap<AnyResource, RecordPlan>()

function getRecordPlan(resource: AnyResource): RecordPlan {
  let plan = plans.get(resource)
  if (!plan) {
    plan = buildRecordPlan(resource)
    plans.set(resource, plan)
  }
  return plan
}

function buildRecordPlan(resource: AnyResource): RecordPlan {
  const members: Member[] = []
  const targets: ReferencedResource[] = []
  for (const [name, field] of Object.entries(resource.fields)) {
    if (field.options.access === 'internal' || field.options.secret) continue
    members.push(fieldMember(name, field))
    const { target, reference, roles } = field.kind
    if (target && reference?.as && field.kind.name === 'reference') {
      members.push(referenceMember(name, target, reference, field.options.omitNull === true))
      targets.push({ resource: target, idsOf: (row) => (row[name] === null ? [] : [row[name] as string]) })
    }
    if (target && roles) {
      members.push(rolesDisplayMember(name, target))
      targets.push({ resource: target, idsOf: (row) => parseRoleIds(row[name] as string) })
    }
  }
  return {
    links: buildLinkWriter(resource),
    members,
    targets,
    derived: Object.keys(resource.derived),
    variants: resource.variants,
  }
}

function fieldMember(name: string, field: AnyField): Member {
  const { kind, options } = field
  const key = `,"${name}":`
  const absent = options.omitNull ? '' : `${key}null`
  return (row) => {
    const stored = row[name]
    return stored === null || stored === undefined ? absent : key + kind.toJson(stored)
  }
}

function referenceMember(
  name: string,
  target: string,
  { as, withUrlName }: ReferenceOptions,
  isOmittable: boolean,
): Member {
  const key = `,"${as}":`
  const urlName = `,"urlName":"${target}"}`
  return (row, named) => {
    if (isOmittable && row[name] === null) return ''
    const text = named.get(target)?.get(row[name] as string)?.text ?? 'null'
    return key + (withUrlName && text !== 'null' ? text.slice(0, -1) + urlName : text)
  }
}

/** `…RolesDisplay`: each role with a name for people; an `@id` whose record is gone is left out. */
function rolesDisplayMember(name: string, target: string): Member {
  return (row, named) => {
    const shown = (JSON.parse(row[name] as string) as string[]).flatMap((role) => {
      if (role.startsWith('#')) return [{ name: role, role }]
      const record = named.get(target)?.get(role.slice(1))
      return record ? [{ name: `@${record.name}`, role }] : []
    })
    return `,"${name}Display":${JSON.stringify(shown)}`
  }
}

function parseRoleIds(stored: string): string[] {
  if (!stored.includes('"@')) return []
  return (JSON.parse(stored) as string[]).flatMap((role) => (role.startsWith('@') ? [role.slice(1)] : []))
}

async function loadReferences(
  context: ReadContext,
  plan: RecordPlan,
  rows: readonly AnyRow[],
): Promise<ReferencesById> {
  const wanted = new Map<string, Set<string>>()
  for (const { resource, idsOf } of plan.targets) {
    let ids = wanted.get(resource)
    if (!ids) {
      ids = new Set()
      wanted.set(resource, ids)
    }
    for (const row of rows) for (const id of idsOf(row)) ids.add(id)
  }
  const named = new Map<string, ReadonlyMap<string, Reference>>()
  for (const [resource, ids] of wanted) {
    if (ids.size > 0) named.set(resource, await context.controller.references.find(context.db, resource, ids))
  }
  return named
}

function renderMembers(
  plan: RecordPlan,
  row: AnyRow,
  named: ReferencesById,
  derived: Readonly<Record<string, unknown>> | undefined,
): string {
  let text = ''
  for (const member of plan.members) text += member(row, named)
  if (plan.variants) text += renderVariantFields(plan.variants, row)
  return derived ? text + renderComputedFields(plan.derived, derived) : text
}

/** Computed members, each with a comma before it; only those that are declared, and not those that are undefined. */
export function renderComputedFields(declared: readonly string[], values: Readonly<Record<string, unknown>>): string {
  let text = ''
  for (const name of declared) {
    const value = values[name]
    if (value !== undefined) text += `,"${name}":${toJsonText(value)}`
  }
  return text
}

function renderVariantFields(variants: NonNullable<AnyResource['variants']>, row: AnyRow): string {
  const fields = variants[row.typeId as string] ?? {}
  const details = JSON.parse(row.details as string) as Record<string, unknown>
  let text = ''
  for (const [name, field] of Object.entries(fields)) {
    if (field.options.secret || field.options.access === 'internal') continue
    const value = details[name]
    if (value === undefined || (value === null && field.options.omitNull)) continue
    text += `,"${name}":${value === null ? 'null' : field.kind.toJson(field.kind.encode(value))}`
  }
  return text
}
