// From rows to the JSON that leaves: declared fields only, JSON columns pasted as they are stored.
import type { Context } from '../context.ts'
import type { AnyResource, AnyRow } from '../resources/define.ts'
import type { AnyField } from '../schema/fields.ts'
import { linkWriter } from './links.ts'
import { jsonText } from './raw-json.ts'
import type { Reference } from './references.ts'

/** How an operation wants records shown, where it differs from the resource's own way. */
export interface Presentation {
  /** What the resource's `derive` is told. */
  readonly view?: unknown
  /** JSON text of `_links` in place of the resource's. */
  readonly links?: (row: AnyRow) => string
}

/** JSON text of each row, in their order. */
export async function present(
  context: Context,
  resource: AnyResource,
  rows: readonly AnyRow[],
  how: Presentation = {},
): Promise<string[]> {
  if (rows.length === 0) return []
  const plan = planOf(resource)
  const named = await loadNamed(context, plan, rows)
  const derived = resource.derive ? await resource.derive(context, rows, how.view) : undefined
  const links = how.links ?? plan.links
  return rows.map((row, at) => writeRecord(plan, row, links(row), named, derived?.[at]))
}

/** How the members of a resource's records are written, made once. */
interface Plan {
  readonly links: (row: AnyRow) => string
  readonly members: readonly Member[]
  readonly targets: readonly Target[]
  readonly derived: readonly string[]
  readonly variants: AnyResource['variants']
}

type Member = (row: AnyRow, named: Named) => string

/** A field whose values name records of another resource. */
interface Target {
  readonly resource: string
  idsOf(row: AnyRow): readonly string[]
}

/** The referenced records by resource and id. */
type Named = ReadonlyMap<string, ReadonlyMap<string, Reference>>

const plans = new WeakMap<AnyResource, Plan>()

function planOf(resource: AnyResource): Plan {
  let plan = plans.get(resource)
  if (!plan) {
    plan = makePlan(resource)
    plans.set(resource, plan)
  }
  return plan
}

function makePlan(resource: AnyResource): Plan {
  const members: Member[] = []
  const targets: Target[] = []
  for (const [name, field] of Object.entries(resource.fields)) {
    if (field.options.access === 'internal' || field.options.secret) continue
    members.push(plainMember(name, field))
    const { target, reference, roles } = field.kind
    if (target && reference?.as && field.kind.name === 'reference') {
      members.push(referenceMember(name, reference.as, target))
      targets.push({ resource: target, idsOf: (row) => (row[name] === null ? [] : [row[name] as string]) })
    }
    if (target && roles) {
      members.push(rolesDisplayMember(name, target))
      targets.push({ resource: target, idsOf: (row) => idsInRoles(row[name] as string) })
    }
  }
  return {
    links: linkWriter(resource),
    members,
    targets,
    derived: Object.keys(resource.derived),
    variants: resource.variants,
  }
}

function plainMember(name: string, field: AnyField): Member {
  const { kind, options } = field
  const key = `,"${name}":`
  const absent = options.omitNull ? '' : `${key}null`
  return (row) => {
    const stored = row[name]
    return stored === null || stored === undefined ? absent : key + kind.toJson(stored)
  }
}

function referenceMember(name: string, as: string, target: string): Member {
  const key = `,"${as}":`
  return (row, named) => key + (named.get(target)?.get(row[name] as string)?.text ?? 'null')
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

function idsInRoles(stored: string): string[] {
  if (!stored.includes('"@')) return []
  return (JSON.parse(stored) as string[]).flatMap((role) => (role.startsWith('@') ? [role.slice(1)] : []))
}

async function loadNamed(context: Context, plan: Plan, rows: readonly AnyRow[]): Promise<Named> {
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
    if (ids.size > 0) named.set(resource, await context.controller.references.of(context.db, resource, ids))
  }
  return named
}

function writeRecord(
  plan: Plan,
  row: AnyRow,
  links: string,
  named: Named,
  derived: Readonly<Record<string, unknown>> | undefined,
): string {
  let text = `{"_links":${links}`
  for (const member of plan.members) text += member(row, named)
  if (plan.variants) text += variantMembers(plan.variants, row)
  if (derived) {
    for (const name of plan.derived) {
      const value = derived[name]
      if (value !== undefined) text += `,"${name}":${jsonText(value)}`
    }
  }
  return `${text}}`
}

function variantMembers(variants: NonNullable<AnyResource['variants']>, row: AnyRow): string {
  const fields = variants[row.typeId as string] ?? {}
  const details = JSON.parse(row.details as string) as Record<string, unknown>
  let text = ''
  for (const [name, field] of Object.entries(fields)) {
    if (field.options.secret || field.options.access === 'internal') continue
    const value = details[name]
    if (value === undefined || (value === null && field.options.omitNull)) continue
    text += `,"${name}":${JSON.stringify(value)}`
  }
  return text
}
