// Masks secrets in the audit: secret members of records become `***`, at any depth, before anything is written.
import type { AnyResource } from '../resources/define.ts'
import type { AnyField, Fields } from '../schema/fields.ts'

/** A record as the code sees it, or a structured member of one. */
export type RecordValues = Readonly<Record<string, unknown>>
/** Returns the values of a record with its secrets masked. */
export type AuditMask = (values: RecordValues) => RecordValues

const MASKED = '***'

/** Compiles what masks the secrets of a record; it returns the same object if the resource has none. */
export function compileAuditMask({ fields, variants }: AnyResource): AuditMask {
  const own = compileFieldsMask(fields)
  const byType = new Map(Object.entries(variants ?? {}).map(([type, details]) => [type, compileFieldsMask(details)]))
  const isPlain = !own && [...byType.values()].every((mask) => !mask)
  if (isPlain) return (values) => values
  return (values) => {
    const masked = own ? own(values) : values
    const details = byType.get(String(values.typeId))
    return details ? { ...masked, details: details(values.details as RecordValues) } : masked
  }
}

/** Undefined if none of the fields is secret. */
function compileFieldsMask(fields: Fields): AuditMask | undefined {
  const secrets: string[] = []
  const inner = new Map<string, AuditMask>()
  for (const [name, field] of Object.entries(fields)) {
    const mask = field.kind.members && compileFieldsMask(field.kind.members)
    if (isSecret(field)) secrets.push(name)
    else if (mask) inner.set(name, mask)
  }
  if (secrets.length === 0 && inner.size === 0) return undefined
  return (values) => {
    const masked: Record<string, unknown> = { ...values }
    for (const name of secrets) if (hasValue(masked[name])) masked[name] = MASKED
    for (const [name, mask] of inner) if (hasValue(masked[name])) masked[name] = mask(masked[name] as RecordValues)
    return masked
  }
}

function isSecret({ options }: AnyField): boolean {
  return options.secret === true || (options as { masked?: boolean }).masked === true
}

function hasValue(value: unknown): boolean {
  return value !== null && value !== undefined
}
