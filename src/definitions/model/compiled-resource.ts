// A resource compiled once from its definition: columns, references, filter symbols, masks, render plans, bodies.
import type { AnyResource } from '../resources/define.ts'
import type { JsonSchema } from '../schema/json-schema.ts'
import { type AuditMask, compileAuditMask } from './audit-mask.ts'
import { type BodyShapes, compileBodyShapes } from './body-shapes.ts'
import {
  listFields,
  listReferenceFields,
  listSetTables,
  type Mention,
  type NamedField,
  type ReferenceField,
  type SetTableInfo,
} from './columns.ts'
import { compileUndeclaredSearch, type UndeclaredSearch } from './declared-fields.ts'
import { compileFilterSource, type FilterSource } from './filter-symbols.ts'
import { compileRecordPlan, type RecordPlan } from './record-plan.ts'
import { compileRecordSchema } from './record-schema.ts'

/** Everything that is derived from a definition and from nothing else; it never changes while the process runs. */
export interface CompiledResource {
  readonly definition: AnyResource
  /** All stored fields in the order of the definition; their names are the columns. */
  readonly fields: readonly NamedField[]
  readonly columns: readonly string[]
  /** A record without values: each field is null. */
  readonly emptyEntity: Readonly<Record<string, null>>
  readonly sets: readonly SetTableInfo[]
  readonly references: readonly ReferenceField[]
  readonly findUndeclared: UndeclaredSearch
  /** The fields, of any resource, that mention records of this one. */
  readonly mentions: readonly Mention[]
  /** The resources whose records are records of this one too. */
  readonly subtypes: readonly AnyResource[]
  /** The plural names of the resource and of the one that its records belong to as well. */
  readonly withParent: readonly string[]
  /** The symbols that filters and orders of administrators know. */
  readonly filterSource: FilterSource
  readonly auditMask: AuditMask
  readonly recordPlan: RecordPlan
  /** The schema of records that show all of their members; documents give one name to this one object. */
  readonly recordSchema: JsonSchema
  readonly bodyShapes: BodyShapes
}

/**
 * Compiles one of `resources`, which are all that there are.
 * @param mentions the references of all of them
 */
export function compileResource(
  definition: AnyResource,
  resources: readonly AnyResource[],
  mentions: readonly Mention[],
): CompiledResource {
  const { plural, subtypeOf } = definition
  const fields = listFields(definition)
  return {
    definition,
    fields,
    columns: fields.map(({ name }) => name),
    emptyEntity: Object.fromEntries(fields.map(({ name }) => [name, null])),
    sets: listSetTables(definition),
    references: listReferenceFields(definition),
    findUndeclared: compileUndeclaredSearch(definition),
    mentions: mentions.filter(({ target }) => target === plural),
    subtypes: resources.filter((other) => other.subtypeOf?.resource === plural),
    withParent: subtypeOf ? [plural, subtypeOf.resource] : [plural],
    filterSource: compileFilterSource(definition),
    auditMask: compileAuditMask(definition),
    recordPlan: compileRecordPlan(definition),
    recordSchema: compileRecordSchema(definition),
    bodyShapes: compileBodyShapes(definition),
  }
}
