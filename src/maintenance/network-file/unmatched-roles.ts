// Role attributes by which policies of a plan select, and that no record has after it: most often they are misspelt.
import { setImmediate } from 'node:timers/promises'
import { toSetTableName } from '../../definitions/model/columns.ts'
import type { AnyResource } from '../../definitions/resources/define.ts'
import { getResource } from '../../definitions/resources/index.ts'
import { findNearest } from '../../foundation/nearest.ts'
import { SetMap } from '../../policy/set-map.ts'
import { sqlText } from '../../storage/lists/sql-text.ts'
import { compileSql, getSqlDialect } from '../../storage/sql-dialect.ts'
import type { ReadContext } from '../../storage/transactions/context.ts'
import { listMembers } from './file-resources.ts'
import type { PlanStep } from './plan-step.ts'

/** A role that selects nothing. The plan can be applied: records may get the attribute later. */
export interface UnmatchedRole {
  /** The plural name of the resource whose records the role would select. */
  readonly resource: string
  readonly role: string
  /** Similar roles that select records of the network or of the file, the most similar first. */
  readonly near: readonly string[]
}

const PAGE = 1_000

// A plan with more of them has another problem than a misspelt word.
const MAX_ROLES = 100

/** The unmatched roles among those that the steps set, at most a hundred. */
export async function listUnmatchedRoles(
  context: Pick<ReadContext, 'db'>,
  steps: readonly PlanStep[],
): Promise<UnmatchedRole[]> {
  const selectedAttributes = new SetMap()
  const plannedAttributes = new SetMap()
  /** How many records with an attribute the plan changes or deletes, by resource and attribute. */
  const changedCounts = new Map<string, number>()
  for (const [at, step] of steps.entries()) {
    // Other requests get a turn.
    if (at % PAGE === 0) await setImmediate()
    const { plural } = step.fileResource.resource
    if (step.action !== 'create') {
      for (const attribute of listAttributes(step.before)) {
        const key = toKey(plural, attribute)
        changedCounts.set(key, (changedCounts.get(key) ?? 0) + 1)
      }
    }
    if (step.action === 'delete') continue
    for (const attribute of listAttributes(step.after)) plannedAttributes.add(plural, attribute)
    for (const { target, attribute } of listSelectedAttributes(step)) selectedAttributes.add(target, attribute)
  }
  const unmatched: UnmatchedRole[] = []
  for (const [plural, attributes] of selectedAttributes) {
    const resource = getResource(plural)
    const planned = plannedAttributes.get(plural)
    for (const attribute of attributes) {
      if (unmatched.length === MAX_ROLES) return unmatched
      const changedCount = changedCounts.get(toKey(plural, attribute)) ?? 0
      if (planned.has(attribute) || (await hasMoreBearers(context, resource, attribute, changedCount))) continue
      const candidates = [...planned, ...(await listSimilarAttributes(context, resource, attribute))]
      const others = new Set(candidates.filter((candidate) => candidate !== attribute))
      const near = findNearest(attribute, others).map((one) => `#${one}`)
      unmatched.push({ resource: plural, role: `#${attribute}`, near })
    }
  }
  return unmatched
}

function listAttributes({ roleAttributes }: Readonly<Record<string, unknown>>): readonly string[] {
  return (roleAttributes ?? []) as readonly string[]
}

/** The attributes in the roles that a step sets or changes. */
function listSelectedAttributes({ fileResource, after, members }: Exclude<PlanStep, { action: 'delete' }>) {
  const changedNames = new Set(members.map(({ name }) => name))
  return listMembers(fileResource, after.typeId).flatMap(({ name, fieldName, field: { kind } }) => {
    const { roles, target } = kind
    if (!roles || target === undefined || !changedNames.has(name)) return []
    return ((after[fieldName] ?? []) as readonly string[])
      .filter((role) => role.startsWith('#') && role !== '#all')
      .map((role) => ({ target, attribute: role.slice(1) }))
  })
}

/** Whether more than `count` stored records have the attribute. */
async function hasMoreBearers(
  { db }: Pick<ReadContext, 'db'>,
  resource: AnyResource,
  attribute: string,
  count: number,
): Promise<boolean> {
  const table = sqlText.table(toSetTableName(resource, 'roleAttributes'))
  const query = sqlText`select 1 as one from ${table} where value = ${attribute} limit ${count + 1}`
  const { rows } = await db.executeQuery(compileSql(db, query))
  return rows.length > count
}

const MAX_CANDIDATES = 200

/** Attributes of stored records that have a half of this one in common. */
async function listSimilarAttributes(
  { db }: Pick<ReadContext, 'db'>,
  resource: AnyResource,
  attribute: string,
): Promise<string[]> {
  const sqlDialect = getSqlDialect(db)
  const values = sqlDialect.distinctValues(toSetTableName(resource, 'roleAttributes'), 'value', false)
  const middle = Math.ceil(attribute.length / 2)
  // A single typing error leaves one half intact.
  const [first, second] = [attribute.slice(0, middle), attribute.slice(middle) || attribute].map((half) =>
    sqlDialect.containsIgnoringCase(sqlText.ref('value'), half),
  )
  const query = sqlText<{
    value: string
  }>`select value from ${values} as found where ${first} or ${second} limit ${MAX_CANDIDATES}`
  const { rows } = await db.executeQuery(compileSql(db, query))
  return rows.map(({ value }) => value)
}

function toKey(plural: string, attribute: string): string {
  return `${plural}\n${attribute}`
}
