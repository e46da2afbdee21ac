// A failing machine: its disk is full, its log takes nothing, files disappear, its clock jumps.
import { closeSync, openSync, readFileSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { getDataPaths } from '../../src/settings/data-directory.ts'
import { CLIENT } from '../world/controller.ts'
import { expectFaults } from '../world/faults.ts'
import { sendRepeatedly, sendRequest } from './attackers.ts'
import { makeSmallDisk } from './small-disk.ts'
import { expectAllWritten, expectUnharmed, storm } from './storm.ts'
import type { Target } from './target.ts'

/** Refused sign-ins, each of which is logged. */
function refuseMany(target: Target, seconds: number) {
  const attackRequest = { path: `${CLIENT}/authenticate?method=cert`, body: '{}' }
  return sendRepeatedly({ concurrency: 10, seconds }, () => sendRequest(target, attackRequest))
}

it('a disk that is full, of data and of log, stops writes with 503 until it has room again', async () => {
  const disk = makeSmallDisk()
  const logFile = join(disk.path, 'log')
  const stderr = openSync(logFile, 'a')
  try {
    const options = { parent: disk.path, stderr, env: { CONTROLLER_LOG_LEVEL: 'debug' } }
    const outcome = await storm('full disk', options, async (target) => {
      await wait(2_000)
      disk.fill(target.pid)
      await refuseMany(target, 4)
      const whileFull = await target.send('POST', '/services', { name: 'refused', encryptionRequired: true })
      disk.free(target.pid)
      await wait(3_000)
      const afterwards = await target.send('POST', '/services', { name: 'taken', encryptionRequired: true })
      return [whileFull.status, whileFull.body.error?.code, afterwards.status]
    })

    expect(outcome.attack).toEqual([503, 'STORAGE_UNAVAILABLE', 201])
    expect([201, 503]).toEqual(expect.arrayContaining([...outcome.work.writeStatuses]))
    expect(outcome.work.writeStatuses.at(-1)).toBe(201)
    // Written after there was room again.
    const isTold = readFileSync(logFile, 'utf8').includes('STORAGE_UNAVAILABLE')
    expect(isTold, 'the log has what happened while the disk was full').toBe(true)
    expectUnharmed(outcome)
  } finally {
    closeSync(stderr)
    disk.remove()
  }
})

it('a log that never takes anything keeps no administrator from working', async () => {
  const stderr = openSync('/dev/full', 'w')

  const outcome = await storm('full log', { stderr, env: { CONTROLLER_LOG_LEVEL: 'debug' } }, (target) =>
    refuseMany(target, 6),
  )

  closeSync(stderr)
  expect([401, 429]).toEqual(expect.arrayContaining(Object.keys(outcome.attack).map(Number)))
  expectUnharmed(outcome)
  expectAllWritten(outcome)
})

it('a database file that goes away while it is written to stops writes with 503', async () => {
  expectFaults(/was deleted or replaced/)
  const away = (database: string) => `${database}.away`
  const options = {
    beforeRestart(directory: string) {
      const { database } = getDataPaths(directory)
      renameSync(away(database), database)
    },
  }

  const outcome = await storm('deleted file', options, async (target) => {
    await wait(2_000)
    const { database } = getDataPaths(target.directory)
    renameSync(database, away(database))
    await wait(4_000)
    const refused = await target.send('POST', '/services', { name: 'refused', encryptionRequired: true })
    return [refused.status, refused.body.error?.code]
  })

  expect(outcome.attack).toEqual([503, 'STORAGE_UNAVAILABLE'])
  expect(outcome.work.acknowledged.length).toBeGreaterThan(0)
  expect([201, 503]).toEqual(expect.arrayContaining([...outcome.work.writeStatuses]))
  expectUnharmed(outcome)
})

const DAY_MS = 24 * 60 * 60_000
// Longer than the controller waits before it looks for idle sessions.
const SWEEP_MS = 7_000

it('a clock that jumps forward by a year, back by two, and to where it was leaves the audit whole', async () => {
  expectFaults(/clock/)
  const shift = new URL('./clock-shift.mjs', import.meta.url)
  const env = { NODE_OPTIONS: `--import ${shift.href}` }

  const outcome = await storm('jumping clock', { env, hasChannel: true }, async (target) => {
    const countRecords = async () =>
      (await target.send('GET', '/controller/audit?limit=1')).body.meta.pagination.totalCount as number
    const before = await countRecords()
    for (const shiftMs of [400 * DAY_MS, -400 * DAY_MS, 0]) {
      target.served.child.send({ shiftMs })
      await wait(SWEEP_MS)
    }
    const { body } = await target.send('GET', '/controller/audit/verify')
    return { cut: before - (await countRecords()), isWhole: body.data.isWhole as boolean }
  })

  expect(outcome.attack.cut).toBeLessThanOrEqual(0)
  expect(outcome.attack.isWhole).toBe(true)
  expectUnharmed(outcome)
  expectAllWritten(outcome)
})
