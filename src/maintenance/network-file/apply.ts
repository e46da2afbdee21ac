// Applies a plan: in one transaction if it is small, otherwise in several. Applying the file again continues after a failure.
import { setImmediate } from 'node:timers/promises'
import type { AnyResource } from '../../definitions/resources/define.ts'
import type { CheckedData } from '../../definitions/schema/config-schemas.ts'
import { type EntityStore, get } from '../../storage/entities/entities.ts'
import { getRecordTable } from '../../storage/entities/record-tables.ts'
import type { Context, WriteContext } from '../../storage/transactions/context.ts'
import { ConfigDataRules } from './config-data.ts'
import { FileMistakes } from './mistakes.ts'
import { toFileError } from './plan-records.ts'
import type { PlanStep } from './plan-step.ts'
import { applyValues } from './record-comparison.ts'

type PreparedStep = (tx: WriteContext) => Promise<unknown>

/** A larger transaction would delay the changes of others. */
export const MAX_RECORDS_PER_TRANSACTION = 200
/** How long the preparation of steps may delay other requests, unless a single one takes longer. */
const MAX_TURN_MS = 5

interface Preparation {
  /** Ends it early, after any step. */
  readonly isStopped?: (() => boolean) | undefined
  /** The list that collects the rules that records break. */
  readonly mistakes?: FileMistakes
}

/**
 * Prepares the changes of a plan: what can be judged outside of a transaction, such as certificates and config data, is.
 * @throws the rules that records break, by their places in the file
 */
export async function prepareSteps(
  entities: EntityStore,
  context: Context,
  steps: readonly PlanStep[],
  { isStopped, mistakes = new FileMistakes() }: Preparation,
): Promise<PreparedStep[]> {
  const prepared: PreparedStep[] = []
  const configData = await ConfigDataRules.load(context, steps)
  let turnBeganAt = performance.now()
  for (const step of steps) {
    try {
      const checkedData = configData.requireMatch(step)
      prepared.push(await withPlace(step, () => prepareStep(entities, context, step, checkedData)))
    } catch (error) {
      mistakes.add(error)
      configData.skipRefused(step, error)
    }
    if (performance.now() - turnBeganAt > MAX_TURN_MS) {
      // Other requests get a turn.
      await setImmediate()
      turnBeganAt = performance.now()
    }
    if (isStopped?.()) break
  }
  mistakes.throwIfAny()
  return prepared
}

/**
 * Makes the changes of a plan, and yields how many are made after each transaction. All are prepared before the first one.
 * @param isStopped ends it before the next transaction
 * @throws the errors of the rules of a record, by its place in the file; the transaction of that record changes nothing
 */
export async function* applySteps(
  entities: EntityStore,
  context: Context,
  steps: readonly PlanStep[],
  isStopped?: () => boolean,
): AsyncGenerator<number> {
  const changes = await prepareSteps(entities, context, steps, { isStopped })
  for (let at = 0; at < steps.length && !isStopped?.(); at += MAX_RECORDS_PER_TRANSACTION) {
    const end = Math.min(at + MAX_RECORDS_PER_TRANSACTION, steps.length)
    await context.write(async (tx) => {
      for (let index = at; index < end; index++)
        await withPlace(steps[index] as PlanStep, () => (changes[index] as PreparedStep)(tx))
    })
    yield end
  }
}

/**
 * Judges a plan by all rules without making its changes. One that is a single transaction is tried as a whole; a larger one is
 * only prepared, because a transaction of that size would delay the changes of others.
 * @param dryRun a context whose transactions are rolled back
 * @param isStopped ends it early
 * @throws the errors of the rules of a record, by its place in the file
 */
export async function checkSteps(
  entities: EntityStore,
  dryRun: Context,
  steps: readonly PlanStep[],
  isStopped?: () => boolean,
): Promise<void> {
  if (steps.length > MAX_RECORDS_PER_TRANSACTION) await prepareSteps(entities, dryRun, steps, { isStopped })
  else for await (const _ of applySteps(entities, dryRun, steps, isStopped));
}

/** @param checkedData of a config: what its behavior would prepare, had the network the config types that the plan makes */
function prepareStep(
  entities: EntityStore,
  context: Context,
  step: PlanStep,
  checkedData: CheckedData | undefined,
): Promise<PreparedStep> | PreparedStep {
  const { id, fileResource } = step
  const { resource } = fileResource
  if (step.action === 'delete') return (tx) => removeIfPresent(entities, tx, resource, id)
  if (step.action === 'create') {
    const draft = { ...step.after } as never
    if (!checkedData) return entities.prepareInsert(context, resource, draft)
    return (tx) => entities.insert(tx, resource, draft, { prepared: checkedData })
  }
  if (!checkedData && !step.isCreatedByPlan) return entities.preparePatch(context, resource, id, step.values)
  // Only the transaction that creates it has the record.
  return async (tx) => {
    const before = (await get(tx, resource, id)) as never
    await entities.update(tx, resource, before, applyValues(fileResource, before, step.values), {
      prepared: checkedData,
    })
  }
}

/** Another deletion of the plan may have deleted the record, as one of its own. */
async function removeIfPresent(
  entities: EntityStore,
  tx: WriteContext,
  resource: AnyResource,
  id: string,
): Promise<void> {
  if (await getRecordTable(resource).exists(tx.db, id)) await entities.removeInTransaction(tx, resource, id)
}

/** Names in errors the place of the record in the file. A deletion has none. */
async function withPlace<T>(step: PlanStep, run: () => Promise<T> | T): Promise<T> {
  try {
    return await run()
  } catch (error) {
    throw step.action === 'delete' ? error : toFileError(error, step)
  }
}
