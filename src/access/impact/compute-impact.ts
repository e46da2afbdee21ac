// Predicts which access a deletion or a change takes away and gives: by the evaluator that decides after the change.
import { setImmediate } from 'node:timers/promises'
import type { Store } from '../../storage/store.ts'
import type { RecordChange } from '../../storage/transactions/changes.ts'
import type { Context } from '../../storage/transactions/context.ts'
import type { Access } from '../access.ts'
import { findAffectedIdentities } from './affected-identities.ts'
import { compareReach, type Tallies } from './compare-reach.ts'
import { findOpenedGates, type OpenedGate } from './opened-gates.ts'
import { groupServicesByRouters } from './reach.ts'
import { countRevokedSessions } from './revoked-sessions.ts'
import { type BlockedEffect, type Effect, nameBlockingChecks, Tally } from './tally.ts'

export interface Impact {
  /** Rights to dial or host that end. */
  readonly loses: Effect
  /** Rights to dial or host that begin. */
  readonly gains: Effect
  /** Permissions that policies grant no longer, and that posture blocked anyway. */
  readonly blockedLosses: BlockedEffect
  /** Permissions that policies grant from now on, and that begin once posture checks pass. */
  readonly blockedGains: BlockedEffect
  /** Rights that stay, and of which the last edge router in common is gone. */
  readonly unreachable: Effect
  /** Sessions that end with their rights. */
  readonly sessions: number
  /** Service policies that demand less of machines. */
  readonly gates: readonly OpenedGate[]
  /** Whether every identity was examined; in a large network only some thousands are. */
  readonly isComplete: boolean
}

const MAX_IDENTITIES = 5_000
const MAX_EXAMPLES = 10
/** How many identities are compared at first, and at most, before other requests get a turn. */
const MIN_BATCH = 4
const MAX_BATCH = 250
/** How long a comparison may delay other requests, unless to try the changes takes longer. */
const MAX_TURN_MS = 20

/** The parts that an impact is computed with. */
export interface ImpactParts {
  readonly access: Access
  readonly store: Store
}

/**
 * Computes the impact of changes without making them; those without `after` are deletions.
 * @param maxExamples how many pairs of an effect are named at most
 */
export async function computeImpact(
  parts: ImpactParts,
  context: Context,
  changes: readonly RecordChange[],
  maxExamples = MAX_EXAMPLES,
): Promise<Impact> {
  const tallies: Tallies = {
    loses: new Tally(maxExamples),
    gains: new Tally(maxExamples),
    blockedLosses: new Tally(maxExamples),
    blockedGains: new Tally(maxExamples),
    unreachable: new Tally(maxExamples),
  }
  const affected = await findAffectedIdentities(parts, context, changes, MAX_IDENTITIES + 1)
  const examined = affected.slice(0, MAX_IDENTITIES)
  const paths = groupServicesByRouters(parts.access, changes)
  for (let at = 0, batch = MIN_BATCH; at < examined.length; ) {
    const subjects = examined.slice(at, at + batch)
    const startedAt = context.clock.monotonic()
    const comparingMs = compareReach(parts.access, changes, subjects, paths, tallies, context.clock)
    const tryingMs = context.clock.monotonic() - startedAt - comparingMs
    at += batch
    batch = adjustBatch(batch, comparingMs, tryingMs)
    await setImmediate()
  }
  return {
    loses: tallies.loses.toEffect(),
    gains: tallies.gains.toEffect(),
    blockedLosses: await nameBlockingChecks(context, changes, tallies.blockedLosses),
    blockedGains: await nameBlockingChecks(context, changes, tallies.blockedGains),
    unreachable: tallies.unreachable.toEffect(),
    sessions: await countRevokedSessions(parts.access, context, changes),
    gates: findOpenedGates(parts.access, changes, examined),
    isComplete: examined.length === affected.length,
  }
}

/**
 * The size of the next batch by how long the last one took. The changes are tried for each batch anew, so a batch compares for as
 * long as that takes: with shorter ones most of the time would go into trying.
 */
function adjustBatch(batch: number, comparingMs: number, tryingMs: number): number {
  const fitting = Math.floor((batch * Math.max(MAX_TURN_MS, tryingMs)) / Math.max(comparingMs, 1))
  return Math.min(Math.max(fitting, 1), 2 * batch, MAX_BATCH)
}
