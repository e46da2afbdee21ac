// The values of a record before and after a change, as the audit stores them: the changed members, without secrets and without large
// values.
import { createHash } from 'node:crypto'
import type { RecordValues } from '../../definitions/model/audit-mask.ts'
import type { AnyChange } from '../transactions/changes.ts'

/** JSON texts; null if there is no record on that side. */
export interface AuditValues {
  readonly before: string | null
  readonly after: string | null
}

// Bounds, in characters. A caller who may change a large record may do so often, and audit records are stored for long.
const MAX_SIDE_LENGTH = 32 * 1024
const MAX_NAME_LENGTH = 1_000

/** Returns all members of a new or deleted record, and the changed members of an updated one; `mask` masks secrets. */
export function toAuditValues(
  { before, after }: Pick<AnyChange, 'before' | 'after'>,
  mask: (values: RecordValues) => RecordValues,
): AuditValues {
  if (!before || !after)
    return { before: before ? toSideText(mask(before)) : null, after: after ? toSideText(mask(after)) : null }
  const changed = pickDifferences({ before, after }, { before: mask(before), after: mask(after) }, isTimeOfChange)
  return { before: toSideText(changed.before), after: toSideText(changed.after) }
}

/**
 * Returns a name as audit records hold it. Half a surrogate pair is replaced, because SQLite would replace it after the hash
 * was computed.
 */
export function toAuditName(name: string): string {
  return (name.length > MAX_NAME_LENGTH ? `${name.slice(0, MAX_NAME_LENGTH)}…` : name).toWellFormed()
}

interface Sides {
  readonly before: RecordValues
  readonly after: RecordValues
}

/** The audit record itself has the time of the change. */
const isTimeOfChange = (name: string): boolean => name === 'updatedAt'

/**
 * Picks from `maskedSides` the members that differ in `actual`; of objects that are on both sides, the members that differ in
 * them.
 */
function pickDifferences(actual: Sides, maskedSides: Sides, isOmitted = (_name: string) => false): Sides {
  const before: [string, unknown][] = []
  const after: [string, unknown][] = []
  for (const name of listMembers(actual)) {
    if (isOmitted(name)) continue
    const [old, now] = [actual.before[name], actual.after[name]]
    if (!isDifferent(old, now)) continue
    const [maskedOld, maskedNew] = [maskedSides.before[name], maskedSides.after[name]]
    if (isObject(old) && isObject(now) && isObject(maskedOld) && isObject(maskedNew)) {
      const inner = pickDifferences({ before: old, after: now }, { before: maskedOld, after: maskedNew })
      before.push([name, inner.before])
      after.push([name, inner.after])
      continue
    }
    if (old !== undefined) before.push([name, maskedOld])
    if (now !== undefined) after.push([name, maskedNew])
  }
  return { before: Object.fromEntries(before), after: Object.fromEntries(after) }
}

function listMembers({ before, after }: Sides): string[] {
  const names = Object.keys(before)
  for (const name in after) if (Object.hasOwn(after, name) && !Object.hasOwn(before, name)) names.push(name)
  return names
}

/** Unchanged values usually are the same object; otherwise their content is compared. */
function isDifferent(before: unknown, after: unknown): boolean {
  if (before === after) return false
  return typeof before !== 'object' || typeof after !== 'object' || JSON.stringify(before) !== JSON.stringify(after)
}

function isObject(value: unknown): value is RecordValues {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Writes one side. If it is too long, its longest members are replaced by their size and hash. */
function toSideText(values: RecordValues): string {
  const whole = JSON.stringify(values)
  if (whole.length <= MAX_SIDE_LENGTH) return whole
  const texts = Object.entries(values).map(([name, value]) => ({ name, text: JSON.stringify(value) ?? 'null' }))
  let length = whole.length
  for (const member of texts.toSorted((a, b) => b.text.length - a.text.length)) {
    if (length <= MAX_SIDE_LENGTH) break
    const replacement = toOmission(member.text)
    length -= member.text.length - replacement.length
    member.text = replacement
  }
  return `{${texts.map(({ name, text }) => `${JSON.stringify(name)}:${text}`).join()}}`
}

function toOmission(text: string): string {
  const sha256 = createHash('sha256').update(text).digest('hex')
  return JSON.stringify({ omitted: { bytes: Buffer.byteLength(text), sha256 } })
}
