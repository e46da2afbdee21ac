// Judges the config data of a plan by the schemas that config types have after the plan.

import { configTypes } from '../../definitions/resources/config-types.ts'
import { configs } from '../../definitions/resources/configs.ts'
import { ConfigSchemas } from '../../definitions/schema/config-schemas.ts'
import type { Problem } from '../../definitions/schema/validate.ts'
import { invalidError, toPrintable } from '../../foundation/errors.ts'
import type { ReadContext } from '../../storage/transactions/context.ts'
import { isOneOf } from '../../storage/untyped.ts'
import type { ChangeStep, CreateStep, PlanStep } from './plan-step.ts'

export class ConfigDataRules {
  readonly #schemas = new ConfigSchemas()
  /** By config type: its schema as text after the plan, or null if it has none. */
  readonly #schemaTexts: ReadonlyMap<string, string | null>
  readonly #plannedTypeIds: ReadonlySet<string>

  private constructor(schemaTexts: ReadonlyMap<string, string | null>, plannedTypeIds: ReadonlySet<string>) {
    this.#schemaTexts = schemaTexts
    this.#plannedTypeIds = plannedTypeIds
  }

  /** The schemas of the config types that the steps change, and of those that their configs have. */
  static async load({ db }: Pick<ReadContext, 'db'>, steps: readonly PlanStep[]): Promise<ConfigDataRules> {
    const typeIds = new Set(steps.filter(isConfigStep).map(({ after }) => after.configTypeId as string))
    const rows =
      typeIds.size === 0
        ? []
        : await db
            .selectFrom('config_types')
            .select(['id', 'schema'])
            .where(isOneOf(db, 'id', [...typeIds]))
            .execute()
    const schemaTexts = new Map(rows.map(({ id, schema }) => [id, schema]))
    const plannedTypeIds = new Set<string>()
    for (const step of steps) {
      if (step.action === 'delete' || step.fileResource.resource.plural !== configTypes.plural) continue
      plannedTypeIds.add(step.id)
      schemaTexts.set(step.id, step.after.schema ? JSON.stringify(step.after.schema) : null)
    }
    return new ConfigDataRules(schemaTexts, plannedTypeIds)
  }

  /** Whether the step is of a config whose type the plan changes: the stored schema says nothing about its data. */
  hasPlannedType(step: PlanStep): boolean {
    return isConfigStep(step) && this.#plannedTypeIds.has(step.after.configTypeId as string)
  }

  /** @throws COULD_NOT_VALIDATE if the step sets config data that breaks the schema of its type, by its place in the file */
  requireMatch(step: PlanStep): void {
    if (!isConfigStep(step) || !setsData(step)) return
    const schemaText = this.#schemaTexts.get(step.after.configTypeId as string)
    if (schemaText === undefined || schemaText === null) return
    const problem = this.#schemas.findProblem(schemaText, step.after.data)
    if (problem) throw toDataError(step, problem)
  }
}

function isConfigStep(step: PlanStep): step is CreateStep | ChangeStep {
  return step.action !== 'delete' && step.fileResource.resource.plural === configs.plural
}

function setsData(step: CreateStep | ChangeStep): boolean {
  return step.action === 'create' || 'data' in step.values
}

/** Names text as such, because a number in quotes looks like a number in a message that shows the value alone. */
function toDataError({ path }: CreateStep | ChangeStep, { field, reason, value, isWrongType }: Problem): unknown {
  const place = [path, 'data', ...(field ? [field] : [])].join('.')
  return isWrongType && typeof value === 'string'
    ? invalidError(place, `${reason}, not the text ${JSON.stringify(toPrintable(value))}`)
    : invalidError(place, reason, value)
}
