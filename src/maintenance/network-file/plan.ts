// Plans what has to change so that a network is as a file describes it. Nothing is stored.
//
// The command line reads the YAML, so that the controller parses only JSON; an error names a place in the request, which
// the command line translates to a line and a column. A plan holds the file in memory and looks records up by name, a page
// at a time; it never loads a table.
import type { Auth } from '../../authentication/auth.ts'
import type { EntityStore } from '../../storage/entities/entities.ts'
import type { Context } from '../../storage/transactions/context.ts'
import { prepareSteps } from './apply.ts'
import { type ClearedRecord, listClearedRecords } from './cleared-references.ts'
import { readEntries } from './entries.ts'
import type { NetworkSection } from './export.ts'
import { type FileResource, fileResources } from './file-resources.ts'
import { KnownNames } from './known-names.ts'
import { FileMistakes } from './mistakes.ts'
import { requireOwnRights } from './own-rights.ts'
import { planDeletions, type RetainedRecord } from './plan-deletions.ts'
import { orderSteps } from './plan-order.ts'
import { type Planning, planRecords, requireRouterIdentities } from './plan-records.ts'
import type { PlanStep } from './plan-step.ts'
import { requireUnusedRecords } from './records-in-use.ts'
import { requireDistinctConfigTypes } from './service-config-types.ts'
import { requireDistinctValues, requireFreeValues } from './unique-values.ts'
import { listUnmatchedRoles, type UnmatchedRole } from './unmatched-roles.ts'

export interface NetworkPlan {
  /** In the order in which they can be made. */
  readonly steps: readonly PlanStep[]
  readonly retained: readonly RetainedRecord[]
  /** The records that the deletions change besides. */
  readonly cleared: readonly ClearedRecord[]
  readonly unmatchedRoles: readonly UnmatchedRole[]
  /** By resource that the file has a section for: the ids of its records. */
  readonly matchedIds: ReadonlyMap<FileResource, ReadonlySet<string>>
}

/**
 * Compares a file with the network. Members that the file leaves out keep their values; of a new record they have their defaults.
 * @param isPruning whether records that the file does not name are deleted, of the resources that it has a section for
 * @param isStopped ends early the search for further mistakes
 * @throws COULD_NOT_VALIDATE and COULD_NOT_PARSE_BODY for the mistakes in the file, by their places
 */
export async function planNetwork(
  { auth, entities }: { readonly auth: Auth; readonly entities: EntityStore },
  context: Context,
  sections: readonly NetworkSection[],
  { isPruning, isStopped }: { readonly isPruning: boolean; readonly isStopped?: () => boolean },
): Promise<NetworkPlan> {
  const mistakes = new FileMistakes()
  const { byResource, unplacedNames } = readEntries(sections, mistakes)
  const planning: Planning = {
    context,
    mistakes,
    names: new KnownNames(context),
    steps: [],
    matchedIds: new Map(),
    referencePaths: new Map(),
    routerIdentities: new Map(),
    identityPaths: new Map(),
    unplacedNames,
  }
  for (const fileResource of fileResources) {
    const ofResource = byResource.get(fileResource)
    if (ofResource) await planRecords(planning, fileResource, ofResource)
  }
  if (!mistakes.isEmpty) {
    // The rules that other records break are reported at once. What else fails then may be a consequence.
    await prepareSteps(entities, context, planning.steps, { mistakes, isStopped }).catch(() => undefined)
    mistakes.throwIfAny()
  }
  requireOwnRights(auth, planning)
  requireDistinctValues(planning)
  const { steps: deletions, retained } = isPruning ? await planDeletions(planning) : { steps: [], retained: [] }
  requireRouterIdentities(planning, deletions)
  await requireFreeValues(planning, deletions)
  await requireDistinctConfigTypes(planning, deletions)
  mistakes.throwIfAny()
  const steps = orderSteps(planning.steps, deletions)
  const findSection = ({ resource: { plural } }: FileResource) =>
    `${sections.findIndex(({ resource }) => resource === plural)}.resource`
  await requireUnusedRecords(planning, steps, findSection)
  mistakes.throwIfAny()
  const cleared = await listClearedRecords(context, steps, planning.names)
  const unmatchedRoles = await listUnmatchedRoles(context, steps)
  return { steps, retained, cleared, unmatchedRoles, matchedIds: planning.matchedIds }
}
