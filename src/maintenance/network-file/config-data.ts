// Judges the config data of a plan by the schemas that config types have after the plan.

import { configTypes } from '../../definitions/resources/config-types.ts'
import { configs } from '../../definitions/resources/configs.ts'
import { type CheckedData, ConfigSchemas } from '../../definitions/schema/config-schemas.ts'
import { startCpuClock } from '../../definitions/schema/time-limit.ts'
import type { Problem } from '../../definitions/schema/validate.ts'
import { invalidError, toPrintable } from '../../foundation/errors.ts'
import type { ReadContext } from '../../storage/transactions/context.ts'
import { isOneOf } from '../../storage/untyped.ts'
import { toFileError } from './plan-records.ts'
import type { ChangeStep, CreateStep, PlanStep } from './plan-step.ts'

/** A check that takes longer is a slow one: usual data takes a tenth of a millisecond. */
const SLOW_CHECK_MS = 5
// The largest file, of data of a megabyte each, takes less on a slow machine.
const MAX_SLOW_CHECKS_MS = 2000

interface PlannedType {
  readonly name: string
  /** Its schema as text after the plan, or null if it has none. */
  readonly schema: string | null
}

export class ConfigDataRules {
  readonly #schemas = new ConfigSchemas()
  /** By id. */
  readonly #types: ReadonlyMap<string, PlannedType>
  readonly #compiledTypeIds = new Set<string>()
  /** By config type: the error for which the file does not create or change it. */
  readonly #refusals = new Map<string, unknown>()
  /** The CPU time of slow checks. */
  #slowChecksMs = 0
  /** The error after which no data is checked. */
  #failure: unknown

  private constructor(types: ReadonlyMap<string, PlannedType>) {
    this.#types = types
  }

  /** The schemas of the config types that the steps change, and of those that their configs have. */
  static async load({ db }: Pick<ReadContext, 'db'>, steps: readonly PlanStep[]): Promise<ConfigDataRules> {
    const typeIds = new Set(steps.filter(isConfigStep).map(({ after }) => after.configTypeId as string))
    const rows =
      typeIds.size === 0
        ? []
        : await db
            .selectFrom('config_types')
            .select(['id', 'name', 'schema'])
            .where(isOneOf(db, 'id', [...typeIds]))
            .execute()
    const types = new Map<string, PlannedType>(rows.map(({ id, ...type }) => [id, type]))
    for (const step of steps) {
      if (!isTypeStep(step)) continue
      const { name, schema } = step.after
      types.set(step.id, { name: name as string, schema: schema ? JSON.stringify(schema) : null })
    }
    return new ConfigDataRules(types)
  }

  /**
   * Checks the config data that a step sets, and returns what the behavior of configs would prepare; undefined if it sets none.
   * @throws COULD_NOT_VALIDATE if the data breaks the schema that its type has after the plan, by its place in the file. After a
   * check that takes too long, by itself or together with others, this error is that of all further configs.
   */
  requireMatch(step: PlanStep): CheckedData | undefined {
    if (!isConfigStep(step) || !setsData(step)) return undefined
    const typeId = step.after.configTypeId as string
    const error = this.#failure ?? this.#refusals.get(typeId)
    if (error) throw error
    const { name, schema = null } = this.#types.get(typeId) ?? {}
    if (schema === null) return { schema }
    const problem = this.#findProblem(step, { typeId, name, schema })
    if (problem) throw toDataError(step, problem)
    return { schema }
  }

  /** Leaves the data of a config type unchecked, if the step is of one: its own rules refuse it. */
  skipRefused(step: PlanStep, error: unknown): void {
    if (isTypeStep(step)) this.#refusals.set(step.id, error)
  }

  #findProblem(
    step: CreateStep | ChangeStep,
    { typeId, name, schema }: { readonly typeId: string; readonly name: unknown; readonly schema: string },
  ): Problem | undefined {
    const failure = `cannot be checked against the schema of its type ${JSON.stringify(toPrintable(name))}`
    try {
      // The first compilation is not counted, because a file may have many types.
      if (!this.#compiledTypeIds.has(typeId)) this.#schemas.prepare(schema)
      this.#compiledTypeIds.add(typeId)
      const readCpuMs = startCpuClock()
      const problem = this.#schemas.findProblem(schema, step.after.data, failure)
      const checkMs = readCpuMs()
      if (checkMs > SLOW_CHECK_MS) this.#slowChecksMs += checkMs
      if (this.#slowChecksMs > MAX_SLOW_CHECKS_MS) throw invalidError('data', `${failure}: such checks take too long`)
      return problem
    } catch (error) {
      this.#failure = toFileError(error, step)
      throw this.#failure
    }
  }
}

function isTypeStep(step: PlanStep): step is CreateStep | ChangeStep {
  return step.action !== 'delete' && step.fileResource.resource.plural === configTypes.plural
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
