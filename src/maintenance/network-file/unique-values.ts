// Values that only one record can have: which ones the records of a plan claim, and whether they are free.

import type { AnyResource } from '../../definitions/resources/define.ts'
import { edgeRouters } from '../../definitions/resources/edge-routers.ts'
import { identities } from '../../definitions/resources/identities.ts'
import type { AnyField } from '../../definitions/schema/fields.ts'
import { invalidError } from '../../foundation/errors.ts'
import { toTunnelerRecords } from '../../network/routers/router-provisioner.ts'
import { isOneOf, untyped } from '../../storage/untyped.ts'
import type { Planning } from './plan-records.ts'
import type { ChangeStep, CreateStep, DeleteStep, PlannedValues, PlanStep } from './plan-step.ts'

/** A value of a column in which no two rows are equal. */
interface UniqueValue {
  /** Equal for equal values of one column. */
  readonly key: string
  readonly resource: AnyResource
  readonly column: string
  /** The field that the value follows from: of the fingerprint of a certificate, the certificate. */
  readonly source: string
  readonly value: unknown
}

/** A value that a record has after its step. The identity of a tunneler has the id of its edge router. */
interface Claim extends UniqueValue {
  readonly step: CreateStep | ChangeStep
}

const PAGE = 1_000

/** The values of a record that no other record of its table can have. */
export function listUniqueValues(resource: AnyResource, values: PlannedValues): UniqueValue[] {
  return Object.entries(resource.fields).flatMap(([column, field]) => {
    if (!field.options.unique || column === 'id') return []
    const source = toSource(column, field)
    const value = values[source]
    if (value === null || value === undefined) return []
    return { key: JSON.stringify([resource.table, column, value]), resource, column, source, value }
  })
}

function toSource(name: string, { options }: AnyField): string {
  return options.access === 'internal' && options.input ? options.input : name
}

/** The values of a record, and of the identity that comes with it, that no other record may have after its step. */
export function listClaims(step: CreateStep | ChangeStep): Claim[] {
  const { resource } = step.fileResource
  const own = listUniqueValues(resource, step.after)
  const ofIdentity =
    resource.plural === edgeRouters.plural && step.after.isTunnelerEnabled === true
      ? listUniqueValues(identities, toTunnelerRecords({ id: step.id, name: step.label }).identity)
      : []
  return [...own, ...ofIdentity].map((unique) => ({ ...unique, step }))
}

/** The error for a value that a record of the file cannot have, by its place. */
export function makeClaimError({ step, source, resource }: Claim, reason: string): unknown {
  const { resource: ofStep, members } = step.fileResource
  const name = members.find(({ fieldName }) => fieldName === source)?.name ?? source
  const tunneler =
    resource === ofStep || resource.table === ofStep.table ? '' : 'names the identity of its tunneler, and '
  return invalidError(`${step.path}.${name}`, `${tunneler}${reason}`)
}

/** Requires that no two records of the file claim a value that only one record can have. The second one is a mistake. */
export function requireDistinctValues({ steps, mistakes }: Pick<Planning, 'steps' | 'mistakes'>): void {
  const holders = new Map<string, Claim['step']>()
  for (const claim of steps.flatMap((step) => (step.action === 'delete' ? [] : listClaims(step)))) {
    const holder = holders.get(claim.key)
    // A file can configure the identity that its edge router gets.
    if (holder && holder.id !== claim.step.id)
      mistakes.add(makeClaimError(claim, `is also that of ${holder.label} in this file`))
    holders.set(claim.key, claim.step)
  }
}

/**
 * Requires that the values which records of the file claim are free, or become free by the plan. Values that follow from others
 * are known when their records are prepared. A value that another record keeps is a mistake.
 */
export async function requireFreeValues(
  { context: { db }, steps: changes, mistakes }: Pick<Planning, 'context' | 'steps' | 'mistakes'>,
  deletions: readonly DeleteStep[],
): Promise<void> {
  const steps = new Map(
    [...changes, ...deletions].map((step) => [toStepKey(step.fileResource.resource, step.id), step]),
  )
  for (const claims of groupByColumn(changes.flatMap(listNewClaims))) {
    for (let at = 0; at < claims.length; at += PAGE) {
      const page = claims.slice(at, at + PAGE)
      const { resource, column } = page[0] as Claim
      const label = 'name' in resource.fields ? 'name' : 'id'
      const rows = await untyped(db)
        .selectFrom(resource.table)
        .select(['id', column, `${label} as label`])
        .where(
          isOneOf(
            db,
            column,
            page.map(({ value }) => value as string),
          ),
        )
        .execute()
      const holders = new Map(rows.map((row) => [row[column], row]))
      for (const claim of page) {
        const holder = holders.get(claim.value as string)
        if (!holder || holder.id === claim.step.id) continue
        const release = steps.get(toStepKey(resource, String(holder.id)))
        if (!release || !isReleasing(release, claim.key))
          mistakes.add(makeClaimError(claim, `is already that of ${holder.label}`))
      }
    }
  }
}

/** Subtypes lie in one table. */
function toStepKey({ table }: AnyResource, id: string): string {
  return `${table} ${id}`
}

/** The claims of values that the record does not have yet. */
function listNewClaims(step: PlanStep): Claim[] {
  if (step.action === 'delete') return []
  const claims = listClaims(step).filter(({ column, source }) => column === source)
  if (step.action === 'create') return claims
  const heldKeys = new Set(listUniqueValues(step.fileResource.resource, step.before).map(({ key }) => key))
  return claims.filter(({ key }) => !heldKeys.has(key))
}

function groupByColumn(claims: readonly Claim[]): Iterable<Claim[]> {
  const groups = new Map<string, Claim[]>()
  for (const claim of claims) {
    const column = `${claim.resource.table} ${claim.column}`
    const group = groups.get(column)
    if (group) group.push(claim)
    else groups.set(column, [claim])
  }
  return groups.values()
}

/** Whether the record of a step no longer has the value after it. */
function isReleasing(step: PlanStep, key: string): boolean {
  return (
    step.action === 'delete' || !listUniqueValues(step.fileResource.resource, step.after).some((own) => own.key === key)
  )
}
