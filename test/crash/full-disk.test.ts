// A disk that takes nothing more: changes are refused with word of when to try again, reading goes on, and nothing is torn.
import { execFileSync } from 'node:child_process'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createHttpTransport } from '../../src/client/http-transport.ts'
import type { Transport } from '../../src/client/transport.ts'
import { getDataPaths } from '../../src/settings/data-directory.ts'
import { BINARY, cleanEnvironment, controller, run, type Served, serve } from '../world/binary.ts'
import { ADMIN, copyOfTemplate, MANAGEMENT, toTestResponse } from '../world/controller.ts'
import { allowFaults, expectFaults } from '../world/faults.ts'
import { findFreePort } from '../world/free-port.ts'
import { lacks } from '../world/machine.ts'

const directory = copyOfTemplate()
const rootPem = readFileSync(join(getDataPaths(directory).pki, 'root.crt'), 'utf8')

let served: Served
let transport: Transport
let token = ''

beforeAll(async () => {
  served = await serve(['--data-dir', directory, '--listen', `127.0.0.1:${await findFreePort()}`], cleanEnvironment())
  transport = createHttpTransport({ url: served.url, rootPem })
  token = (await send('POST', '/authenticate?method=password', ADMIN)).body.data.token
})
afterAll(async () => {
  await transport?.close?.()
  await served?.stop('SIGKILL')
})

async function send(method: string, path: string, body?: unknown) {
  const headers: Record<string, string> = token ? { 'net-session': token } : {}
  const request = { method, path: MANAGEMENT + path, headers, ...(body ? { body } : {}) }
  return toTestResponse(await transport.send(request))
}

const create = (name: string) => send('POST', '/identities', { name, type: 'Device', isAdmin: false })
const names = async () => (await send('GET', '/identities')).body.data.map(({ name }: { name: string }) => name)

/** No file of the process may grow beyond so many bytes: to a database that is what a full disk is. */
function limitFiles(bytes: number | 'unlimited'): void {
  execFileSync('prlimit', [`--pid=${served.child.pid}`, `--fsize=${bytes}:unlimited`])
}

function hasPrlimit(): boolean {
  try {
    execFileSync('prlimit', ['--version'])
    return true
  } catch {
    return false
  }
}

describe.skipIf(lacks('prlimit', hasPrlimit()))('a controller whose disk is full', () => {
  it('refuses changes and goes on reading, and takes changes again once there is room', async () => {
    expectFaults(/STORAGE_UNAVAILABLE/)
    await create('before')

    limitFiles(1)
    const refused = await Promise.all([create('refused 1'), create('refused 2'), create('refused 3')])
    const alone = await create('refused 4')
    const readMeanwhile = await names()
    limitFiles('unlimited')
    const creation = await create('after')

    for (const { status, headers, body } of [...refused, alone]) {
      expect(status).toBe(503)
      expect(body.error.code).toBe('STORAGE_UNAVAILABLE')
      expect(Number(headers['retry-after'])).toBeGreaterThan(0)
    }
    expect(readMeanwhile).toEqual(['Default Admin', 'before'])
    expect(creation.status).toBe(201)
    expect(await names()).toEqual(['Default Admin', 'before', 'after'])
  })

  it('refuses a snapshot for which there is no room, with the reason, and makes it once there is', async () => {
    // Its log may be a file that cannot grow either.
    allowFaults(/STORAGE_UNAVAILABLE/)
    limitFiles(1)
    const refused = await send('POST', '/database/snapshot')
    limitFiles('unlimited')
    const creation = await send('POST', '/database/snapshot')

    expect(refused.status).toBe(503)
    expect(refused.body.error).toMatchObject({ code: 'STORAGE_UNAVAILABLE', cause: { code: 'DISK_FULL' } })
    expect(refused.body.error.cause.message).toContain('not enough space')
    expect(creation.status).toBe(200)
  })

  it('leaves no trace of what it refused in the audit', async () => {
    const { body: report } = await send('GET', '/controller/audit/verify')
    const { body: records } = await send(
      'GET',
      `/controller/audit?filter=${encodeURIComponent('resource="identities"')}`,
    )

    expect(report.data).toMatchObject({ isWhole: true })
    expect(records.data.map(({ entityName }: { entityName: string }) => entityName)).toEqual([
      'after',
      'before',
      'Default Admin',
    ])
  })

  it('keeps every acknowledged change if it is killed at that moment', async () => {
    // Its last log line may be lost with it.
    allowFaults(/STORAGE_UNAVAILABLE/)
    limitFiles(1)
    await create('refused')
    await served.stop('SIGKILL')
    await transport.close?.()
    served = await serve(['--data-dir', directory, '--listen', `127.0.0.1:${await findFreePort()}`], cleanEnvironment())
    transport = createHttpTransport({ url: served.url, rootPem })

    expect(await names()).toEqual(['Default Admin', 'before', 'after'])
    expect((await create('again')).status).toBe(201)
  })
})

describe.skipIf(lacks('prlimit', hasPrlimit()))('controller admin recover on a full disk', () => {
  it('says that there is no space, and works once there is', async () => {
    const stopped = copyOfTemplate()
    const passwordFile = join(stopped, '../password')
    writeFileSync(passwordFile, 'a fresh start\n')
    const words = [
      'admin',
      'recover',
      '--data-dir',
      stopped,
      '--username',
      'back again',
      '--password-file',
      passwordFile,
    ]
    const env = cleanEnvironment()

    const refused = await run('prlimit', ['--fsize=50000', process.execPath, BINARY, ...words], env)

    expect([refused.code, refused.stderr]).toEqual([
      8,
      expect.stringMatching(/the database of \S+ cannot be used: the disk is full.*\nTry: free some space on the disk/),
    ])
    expect((await controller(words, env)).code).toBe(0)
    rmSync(join(stopped, '..'), { recursive: true, force: true })
  })
})

describe.skipIf(lacks('prlimit', hasPrlimit()))('controller init on a full disk', () => {
  it('says what helps', async () => {
    const env = cleanEnvironment()
    const words = ['init', '--data-dir', join(String(env.HOME), 'data'), '--listen', '127.0.0.1:1280']

    const { code, stderr } = await run('prlimit', ['--fsize=10', process.execPath, BINARY, ...words], env)

    expect([code, stderr]).toEqual([1, expect.stringMatching(/\nTry: free some space on the disk$/m)])
  })
})
