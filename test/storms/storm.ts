// A storm: an attack on a controller while an administrator works, and what is left of the controller afterwards.
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { availableParallelism, loadavg } from 'node:os'
import { dirname } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { expect } from 'vitest'
import { checkDatabase } from '../../src/maintenance/integrity/check-database.ts'
import { getDataPaths } from '../../src/settings/data-directory.ts'
import { ADMIN, MANAGEMENT } from '../world/controller.ts'
import { makeDirectory, startTarget, type Target, type TargetOptions } from './target.ts'

/** The memory that the controller may keep once a storm is over: for itself, and for responses that wait for slow readers. */
export const MAX_RESIDENT_MB = 400
/** How long an administrator's read may take, for 99 of 100. */
export const MAX_READ_MS = 250

// How long the controller may take to give memory back.
const MAX_SETTLING_MS = 20_000
const SAMPLE_MS = 250

/** The results of an administrator's work while a controller was attacked. */
interface Work {
  readonly durationsMs: readonly number[]
  readonly failedReads: readonly string[]
  readonly acknowledged: readonly string[]
  /** In the order of the writes; 0 if there was no response. */
  readonly writeStatuses: readonly number[]
}

export interface Outcome<T> {
  /** The result of the attack. */
  readonly attack: T
  readonly work: Work
  /** Names of records whose creation was acknowledged, and that were not there after a kill and a restart. */
  readonly lost: readonly string[]
  /** The findings of a check of the database after the kill. */
  readonly findings: readonly string[]
  readonly readP99Ms: number
  readonly residentMb: { readonly before: number; readonly peak: number; readonly after: number }
}

export interface StormOptions extends TargetOptions {
  /** Runs between the kill and the restart. */
  readonly beforeRestart?: (directory: string) => void
}

/**
 * Starts a controller, attacks it while an administrator reads and writes, lets it settle, kills it, checks what is on disk,
 * and starts it again.
 */
export async function storm<T>(name: string, options: StormOptions, attack: (target: Target) => Promise<T>) {
  warnIfBusy()
  const directory = makeDirectory(options.parent)
  const target = await startTarget(directory, options)
  let outcome: Omit<Outcome<T>, 'lost' | 'findings'>
  try {
    outcome = await observe(target, attack)
  } finally {
    await target.end('SIGKILL')
  }
  options.beforeRestart?.(directory)
  const { findings } = await checkDatabase(directory, getDataPaths(directory))
  const lostChanges = await findLost(directory, outcome.work.acknowledged)
  rmSync(options.parent === undefined ? dirname(directory) : directory, { recursive: true, force: true })
  report(name, outcome)
  return { ...outcome, lost: lostChanges, findings }
}

/** Expects that a storm did no harm. */
export function expectUnharmed({ work, lost, findings, readP99Ms, residentMb }: Outcome<unknown>): void {
  expect(work.failedReads).toEqual([])
  expect(lost).toEqual([])
  expect(findings).toEqual([])
  expect(readP99Ms).toBeLessThan(MAX_READ_MS)
  expect(residentMb.after).toBeLessThan(MAX_RESIDENT_MB)
}

/** Expects that every write of the administrator was taken, too. */
export function expectAllWritten({ work }: Outcome<unknown>): void {
  expect([...new Set(work.writeStatuses)]).toEqual([201])
}

async function observe<T>(target: Target, attack: (target: Target) => Promise<T>) {
  const administrator = await startAdministrator(target)
  const before = target.residentMb()
  let peak = before
  const sample = () => {
    peak = Math.max(peak, target.residentMb())
  }
  const sampling = setInterval(sample, SAMPLE_MS)
  try {
    const result = await attack(target)
    const after = await settle(target)
    const work = await administrator.finish()
    return { attack: result, work, readP99Ms: percentile99(work.durationsMs), residentMb: { before, peak, after } }
  } finally {
    clearInterval(sampling)
    await administrator.end()
  }
}

async function startAdministrator({ url, rootPem }: Target) {
  const workerData = { url, rootPem, management: MANAGEMENT, credentials: ADMIN }
  const thread = new Worker(new URL('./administrator-thread.mjs', import.meta.url), { workerData })
  await once(thread, 'message')
  return {
    async finish(): Promise<Work> {
      thread.postMessage('finish')
      const [work] = await once(thread, 'message')
      return work as Work
    },
    end: () => thread.terminate(),
  }
}

/** Waits until the memory is below its bound, or for so long that it will not be. Returns what is resident then. */
async function settle(target: Target): Promise<number> {
  const startedAt = performance.now()
  while (target.residentMb() >= MAX_RESIDENT_MB && performance.now() - startedAt < MAX_SETTLING_MS)
    await wait(SAMPLE_MS)
  return target.residentMb()
}

function percentile99(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length * 0.99)] ?? Number.POSITIVE_INFINITY
}

/** Starts the controller again and returns what was acknowledged and is not there. */
async function findLost(directory: string, acknowledged: readonly string[]): Promise<string[]> {
  const target = await startTarget(directory, {})
  const { body } = await target.send('GET', '/services?limit=-1')
  const names = new Set(body.data.map(({ name }: { name: string }) => name))
  const code = await target.end('SIGTERM')
  expect(code, 'exit code of a stop after the storm').toBe(0)
  return acknowledged.filter((name) => !names.has(name))
}

/** Times mean little on a machine that has other things to do. */
function warnIfBusy(): void {
  const [load = 0] = loadavg()
  if (load > availableParallelism()) process.stdout.write(`this machine is busy: its load is ${load.toFixed(1)}\n`)
}

function report(name: string, { work, readP99Ms, residentMb }: Omit<Outcome<unknown>, 'lost' | 'findings'>): void {
  const [before, peak, after] = [residentMb.before, residentMb.peak, residentMb.after].map(Math.round)
  process.stdout.write(
    `${name}: ${work.durationsMs.length} reads, p99 ${Math.round(readP99Ms)} ms; ${work.acknowledged.length} writes; ` +
      `resident ${before} MB before, ${peak} at most, ${after} after\n`,
  )
}
