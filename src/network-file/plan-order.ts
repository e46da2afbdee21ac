// Orders the changes of a plan so that each finds what it refers to, and no two records hold one unique value at a time.
import { invalidError } from '../errors.ts'
import type { AnyField } from '../schema/fields.ts'
import type { DeleteStep, PlannedValues, PlanStep } from './plan-step.ts'

/**
 * Records are created and changed after those that they refer to, and deleted before them, at the end. A record whose unique
 * value another one takes over is deleted first, and so is one without a name, which nothing refers to.
 * @param changes in the order of their references
 * @param deletions in that order, too
 */
export function orderSteps(changes: readonly PlanStep[], deletions: readonly DeleteStep[]): PlanStep[] {
  const claims = new Set(
    changes.flatMap((step) => (step.action === 'delete' ? [] : listUniqueValues(step, step.after))),
  )
  const isInTheWay = (step: DeleteStep) =>
    !('name' in step.fileResource.resource.fields) ||
    listUniqueValues(step, step.before).some((value) => claims.has(value))
  const lastFirst = deletions.toReversed()
  return [...lastFirst.filter(isInTheWay), ...changes, ...lastFirst.filter((step) => !isInTheWay(step))]
}

/**
 * Requires that no two records of the file claim a value that only one record can have.
 * @throws COULD_NOT_VALIDATE for the second one, by its place
 */
export function requireDistinctValues(changes: readonly PlanStep[]): void {
  const holders = new Map<string, string>()
  for (const step of changes) {
    if (step.action === 'delete') continue
    for (const value of listUniqueValues(step, step.after)) {
      const holder = holders.get(value)
      const [, name = ''] = JSON.parse(value) as [string, string]
      const source = toSource(name, step.fileResource.resource.fields[name] as AnyField)
      const member = step.fileResource.members.find(({ fieldName }) => fieldName === source)?.name ?? source
      if (holder !== undefined) throw invalidError(`${step.path}.${member}`, `is also that of ${holder} in this file`)
      holders.set(value, step.label)
    }
  }
}

/** The values of a record that no other record of its table can have. */
function listUniqueValues({ fileResource }: PlanStep, values: PlannedValues): string[] {
  const { table, fields } = fileResource.resource
  return Object.entries(fields).flatMap(([name, field]) => {
    const value = field.options.unique && name !== 'id' ? values[toSource(name, field)] : null
    return value === null || value === undefined ? [] : JSON.stringify([table, name, value])
  })
}

/** The field that a unique value follows from: the fingerprint of a certificate from the certificate. */
function toSource(name: string, { options }: AnyField): string {
  return options.access === 'internal' && options.input ? options.input : name
}
