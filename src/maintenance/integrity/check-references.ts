// Checks that records name only records that exist: by references, by sets of them, and by the roles of policies.

import type { ReferenceField } from '../../definitions/model/columns.ts'
import { compiledResources } from '../../definitions/model/index.ts'
import type { AnyResource } from '../../definitions/resources/define.ts'
import { getResource } from '../../definitions/resources/index.ts'
import type { SqliteDatabase } from '../../storage/sqlite/connection.ts'
import type { Defect, Repair } from './defects.ts'

/** A record that names another one, which does not exist. */
interface DanglingRow {
  readonly id: string
  readonly target: string
}

export function* checkReferences(connection: SqliteDatabase): Generator<Defect> {
  for (const { definition, references } of compiledResources) {
    // The fields of a subtype are checked with those of the resource whose table it shares, unless they are its own.
    const inherited = definition.subtypeOf ? getResource(definition.subtypeOf.resource).fields : {}
    for (const reference of references) {
      if (!(reference.column in inherited)) yield* checkReference(connection, definition, reference)
    }
  }
}

function* checkReference(
  connection: SqliteDatabase,
  resource: AnyResource,
  reference: ReferenceField,
): Generator<Defect> {
  const rows = connection.prepare(toDanglingQuery(resource, reference)).iterate() as Iterable<DanglingRow>
  let current: { id: string; targets: string[] } | undefined
  for (const { id, target } of rows) {
    if (current?.id === id) {
      current.targets.push(target)
      continue
    }
    if (current) yield toDefect(resource, reference, current.id, current.targets)
    current = { id, targets: [target] }
  }
  if (current) yield toDefect(resource, reference, current.id, current.targets)
}

/** Finds the records whose field names a record that does not exist, those of one record one after the other. */
function toDanglingQuery({ table }: AnyResource, { column, path, field, target }: ReferenceField): string {
  const { table: targetTable, subtypeOf } = getResource(target)
  const isKind = subtypeOf ? ` and t."${subtypeOf.discriminator}" = 1` : ''
  const missing = (id: string) => `not exists (select 1 from "${targetTable}" t where t.id = ${id}${isKind})`
  const storedColumn = `r."${column}"`
  const jsonPath = ['$', ...path].join('.')
  if (field.kind.name !== 'set') {
    const value = path.length === 0 ? storedColumn : `json_extract(${storedColumn}, '${jsonPath}')`
    const isReadable = path.length === 0 ? '' : `json_valid(${storedColumn}) and `
    return `select r.id, ${value} as target from "${table}" r where ${isReadable}${value} is not null and ${missing(value)} order by r.n`
  }
  const [id, isId] = field.kind.roles ? ['substr(j.value, 2)', `j.value like '@%' and `] : ['j.value', '']
  return `select r.id, ${id} as target from "${table}" r, json_each(iif(json_valid(${storedColumn}), ${storedColumn}, '[]'), '${jsonPath}') j where ${isId}${missing(id)} order by r.n`
}

function toDefect(resource: AnyResource, reference: ReferenceField, id: string, targets: readonly string[]): Defect {
  const { name, target } = reference
  const noun = resource.name.replaceAll('-', ' ')
  const targetNoun = getResource(target).name.replaceAll('-', ' ')
  const description = `${name} of the ${noun} ${id} names the ${targetNoun} ${targets.join(', ')}, which does not exist`
  const repair = findRepair(resource, reference, id, targets)
  return { description, ...(repair ? { repair } : {}) }
}

/**
 * The repair that a deletion of the missing record would have made. A member of a structured field stays as it is: leaving it out
 * may admit more than before: of an auth policy, for example.
 */
function findRepair(
  { plural }: AnyResource,
  { column, path, field }: ReferenceField,
  id: string,
  targets: readonly string[],
): Repair | undefined {
  if (path.length > 0) return undefined
  const place = { resource: plural, id, field: column }
  if (field.kind.name === 'set') {
    const members = field.kind.roles ? targets.map((target) => `@${target}`) : targets
    return { kind: 'remove-members', ...place, members }
  }
  if (field.kind.reference?.onDelete === 'cascade') return { kind: 'delete-record', resource: plural, id }
  return field.options.nullable ? { kind: 'clear-reference', ...place } : undefined
}
