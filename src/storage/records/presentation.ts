// Completes cached records for a caller: computed fields, and the presentation of the operation.

import { getCompiledResource } from '../../definitions/model/index.ts'
import type { AnyResource, AnyRow, Entity } from '../../definitions/resources/define.ts'
import { type JsonForm, toForm } from '../../definitions/schema/json-forms.ts'
import { type Awaitable, whenReady } from '../../foundation/awaitable.ts'
import { toRow } from '../entities/rows.ts'
import type { Context } from '../transactions/context.ts'
import { RawJson } from './raw-json.ts'
import { type CachedRecord, type RenderParts, renderCachedRecords, renderComputedFields } from './render-records.ts'

/** How an operation shows records, if that differs from what the resource says. */
export interface Presentation {
  /** The circumstances for which the behavior of the resource computes fields, such as a viewer. */
  readonly view?: unknown
  /** JSON text of `_links` in place of the resource's. */
  links?(record: CachedRecord): string
  /** The members to show besides those that every record has, if not all are for this caller. */
  readonly only?: readonly string[]
  /** `documented` by default. */
  readonly form?: JsonForm
  /** Members that are others for this caller, of the records that it names. */
  readonly concealment?: Concealment | undefined
}

export interface Concealment {
  /** By their names, with what is shown in their place. */
  readonly members: Readonly<Record<string, unknown>>
  isOf(record: CachedRecord): boolean
}

/** JSON text of each record, in their order. */
export function renderRecords(
  parts: RenderParts,
  context: Context,
  resource: AnyResource,
  records: readonly CachedRecord[],
  presentation: Presentation = {},
): Awaitable<string[]> {
  return whenReady(renderComputedTails(parts, context, resource, records, presentation), (tails) =>
    records.map((record, at) => {
      const { only, concealment } = presentation
      if (concealment?.isOf(record)) {
        const head = concealMembers(record, concealment, presentation)
        return (only ? pickMembers(head, only) : head) + tails[at]
      }
      return (only ? limitHead(record, only, presentation) : renderHead(record, presentation)) + tails[at]
    }),
  )
}

/** From this size on, to copy bytes costs less than to build text. */
const MIN_LONG_BYTES = 64 * 1024

/**
 * The same for a response, or the elements of a JSON array in pieces of UTF-8 if the list is long. Node.js writes a body that is
 * text together with the head, and one of bytes after it.
 */
export async function renderList(
  parts: RenderParts,
  context: Context,
  resource: AnyResource,
  records: readonly CachedRecord[],
  presentation: Presentation = {},
): Promise<readonly string[] | readonly Buffer[]> {
  const isLong = records.reduce((sum, { bytes }) => sum + bytes.length, 0) >= MIN_LONG_BYTES
  if (!isLong || presentation.only || presentation.concealment)
    return renderRecords(parts, context, resource, records, presentation)
  return encodeRecords(
    records,
    await renderComputedTails(parts, context, resource, records, presentation),
    presentation,
  )
}

function encodeRecords(
  records: readonly CachedRecord[],
  tails: readonly string[],
  presentation: Presentation,
): readonly Buffer[] {
  // Most records of a list end in the same way.
  const encoded = new Map<string, Buffer>()
  const pieces: Buffer[] = []
  for (const [at, record] of records.entries()) {
    const tail = tails[at] ?? ''
    let bytes = encoded.get(tail)
    if (!bytes) {
      bytes = Buffer.from(`${tail},`)
      encoded.set(tail, bytes)
    }
    if (presentation.links) pieces.push(Buffer.from(renderHead(record, presentation)))
    else pushForm(pieces, record, presentation.form)
    pieces.push(bytes)
  }
  const last = pieces.pop()
  return last ? [...pieces, last.subarray(0, -1)] : []
}

function pushForm(pieces: Buffer[], { bytes, differences }: CachedRecord, form: JsonForm | undefined): void {
  let copiedTo = 0
  if (form === 'compatible') {
    for (const { begin, end, compatible } of differences) {
      pieces.push(bytes.subarray(copiedTo, begin), Buffer.from(compatible))
      copiedTo = end
    }
  }
  pieces.push(copiedTo === 0 ? bytes : bytes.subarray(copiedTo))
}

/** The head of a record with others in place of some members. */
function concealMembers(record: CachedRecord, { members }: Concealment, presentation: Presentation): string {
  const head = JSON.parse(`${renderHead(record, presentation)}}`) as Record<string, unknown>
  const entries = Object.entries(head).map(([name, value]) => [name, name in members ? members[name] : value])
  return JSON.stringify(Object.fromEntries(entries)).slice(0, -1)
}

const COMMON_MEMBERS = ['_links', 'id', 'createdAt', 'updatedAt', 'tags']

// By the identity of a record, of which a change makes another: clients poll the list of their edge routers, and to parse one costs
// 8.5 µs. Without the cache that poll costs 1.18 times as much, which is over its bound.
const limitedHeads = new WeakMap<CachedRecord, Map<readonly string[], Partial<Record<JsonForm, string>>>>()

/** The head of a record with the common members and those of `only`. */
function limitHead(record: CachedRecord, only: readonly string[], presentation: Presentation): string {
  const { links, form = 'documented' } = presentation
  if (links) return pickMembers(renderHead(record, presentation), only)
  const byMembers = limitedHeads.get(record) ?? new Map<readonly string[], Partial<Record<JsonForm, string>>>()
  const heads = byMembers.get(only) ?? {}
  heads[form] ??= pickMembers(renderHead(record, presentation), only)
  limitedHeads.set(record, byMembers.set(only, heads))
  return heads[form]
}

function pickMembers(head: string, only: readonly string[]): string {
  const record = JSON.parse(`${head}}`) as Record<string, unknown>
  const members = [...COMMON_MEMBERS, ...only].map((name) => [name, record[name]])
  return JSON.stringify(Object.fromEntries(members)).slice(0, -1)
}

/** Renders rows without caching them, for lists that read whole tables. */
export async function renderRows(
  parts: RenderParts,
  context: Context,
  resource: AnyResource,
  rows: readonly AnyRow[],
  presentation: Presentation = {},
): Promise<string[]> {
  return renderRecords(
    parts,
    context,
    resource,
    await renderCachedRecords(parts, context, resource, rows),
    presentation,
  )
}

/** Renders a record from its values as a transaction has just stored them, without reading it back. */
export async function renderEntity<R extends AnyResource>(
  parts: RenderParts,
  context: Context,
  resource: R,
  entity: Entity<R>,
  presentation: Presentation = {},
): Promise<RawJson> {
  // The key of the row is not part of the record.
  const row = { ...toRow(resource, entity), n: 0 } as AnyRow
  const [text = 'null'] = await renderRows(parts, context, resource, [row], presentation)
  return new RawJson(text)
}

/** A record up to its computed fields. */
function renderHead(record: CachedRecord, { links, form }: Presentation): string {
  return links ? `{"_links":${links(record)}${renderFrom(record, record.membersAt, form)}` : renderFrom(record, 0, form)
}

/** The text of a record from a place on, in one of its forms. */
function renderFrom({ bytes, differences }: CachedRecord, begin: number, form: JsonForm | undefined): string {
  if (form !== 'compatible' || differences.length === 0) return bytes.toString('utf8', begin)
  let [text, copiedTo] = ['', begin]
  for (const difference of differences) {
    text += bytes.toString('utf8', copiedTo, difference.begin) + difference.compatible
    copiedTo = difference.end
  }
  return text + bytes.toString('utf8', copiedTo)
}

/** The end of each record: its computed fields, and the closing brace. */
function renderComputedTails(
  parts: RenderParts,
  context: Context,
  resource: AnyResource,
  records: readonly CachedRecord[],
  { view, only, form = 'documented' }: Presentation,
): Awaitable<string[]> {
  const behavior = parts.behaviors.get(resource)
  if (!behavior.computeFields) return records.map(() => '}')
  const inputs = records.map((record) => record.computedInput)
  const computed = behavior.computeFields(context, inputs, view)
  return whenReady(computed, (members) => renderTails(context, resource, members, only, form))
}

function renderTails(
  context: Context,
  resource: AnyResource,
  computedMembers: readonly Record<string, unknown>[],
  only: readonly string[] | undefined,
  form: JsonForm,
): string[] {
  const { computed } = getCompiledResource(resource.plural).recordPlan
  const offlineMembers = hideOfflineFields(context, resource)
  // Records that are described by the same object end in the same way.
  const tailsByMembers = new Map<object | undefined, string>()
  return computedMembers.map((members) => {
    const cachedTail = tailsByMembers.get(members)
    if (cachedTail !== undefined) return cachedTail
    const text = renderComputedFields(computed, offlineMembers ? { ...members, ...offlineMembers } : members, only)
    const tail = `${toForm(text, form)}}`
    tailsByMembers.set(members, tail)
    return tail
  })
}

/** The fields that only a running controller could compute, as offline commands show them. */
function hideOfflineFields({ caller }: Context, { computed }: AnyResource): Record<string, unknown> | undefined {
  if (caller.kind !== 'local-operator') return undefined
  const offlineMembers = Object.entries(computed).filter(([, schema]) => 'x-offline' in schema)
  return Object.fromEntries(offlineMembers.map(([member, schema]) => [member, schema['x-offline']]))
}
