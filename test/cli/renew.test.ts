// `controller renew`: an identity file gets a new certificate, and works at every moment on the way.
import { spawn } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import {
  chmodSync,
  chownSync,
  existsSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { AnyOperation } from '../../server/api/operation.ts'
import { operations } from '../../server/operations/operations.ts'
import { errors } from '../../src/foundation/errors.ts'
import { BINARY, cleanEnvironment, type Finished } from '../world/binary.ts'
import { commandLine } from '../world/command-line.ts'
import {
  type EnrolledFile,
  enrolledFile,
  type ReachableController,
  reachableController,
  readIdentityFileText,
  signInByFile,
} from '../world/enrollments.ts'
import { expectFaults } from '../world/faults.ts'
import { lacks } from '../world/machine.ts'

/** How the controller handles the next confirmation of a new certificate. */
type Behavior = 'succeeds' | 'hangs before' | 'hangs after' | 'fails after'

let network: ReachableController
let behavior: Behavior
let confirmations: number
/** Ends the wait of a confirmation that hangs. */
let release: () => void
const env = cleanEnvironment()

beforeAll(async () => {
  network = await reachableController({ operations: operations.map(makeUnreliable) })
})
afterAll(() => network?.stop())
beforeEach(() => {
  behavior = 'succeeds'
  confirmations = 0
})

function makeUnreliable(operation: AnyOperation): AnyOperation {
  if (operation.id !== 'extendVerifyCurrentIdentityAuthenticator') return operation
  return {
    ...operation,
    async run(call) {
      if (behavior === 'hangs before') {
        await hang()
        throw errors.NOT_FOUND()
      }
      const response = await operation.run(call)
      if (behavior === 'hangs after') await hang()
      if (behavior === 'fails after') throw errors.TIMEOUT()
      confirmations++
      return response
    },
  }
}

function hang(): Promise<void> {
  confirmations++
  return new Promise((resolve) => {
    release = resolve
  })
}

const renew = (file: string, ...args: string[]) => commandLine(['renew', file, ...args], env)

const certificateIn = (path: string) => new X509Certificate(readIdentityFileText(path).id.cert.slice(4))

async function statusOf(path: string): Promise<number> {
  return (await signInByFile(network, path)).status
}

function expectRefused({ code, stdout, stderr }: Finished, exitCode: number, reason: RegExp) {
  expect(stderr).toMatch(reason)
  expect(code).toBe(exitCode)
  expect(stdout).toBe('')
}

/** Starts a renewal in a process of its own, and kills it while the controller confirms the new certificate. */
async function killDuringConfirmation(file: string): Promise<void> {
  const child = spawn(process.execPath, [BINARY, 'renew', file], { env, stdio: 'ignore' })
  const ended = new Promise((resolve) => child.on('close', resolve))
  await expect.poll(() => confirmations, { timeout: 20_000 }).toBe(1)
  child.kill('SIGKILL')
  await ended
  release()
  behavior = 'succeeds'
}

describe('renewing an identity file', () => {
  it('replaces certificate and key, with which the same identity signs in', async () => {
    const { file, identityId, folder } = await enrolledFile(network)
    const before = readIdentityFileText(file)

    const { code, stdout, stderr } = await renew(file)

    const after = readIdentityFileText(file)
    expect(stderr).toBe('')
    expect(code).toBe(0)
    expect(stdout).toMatch(/^Renewed the certificate in .*laptop\.json\. It expires \d{4}-\d\d-\d\d\.$/m)
    expect(after.id.cert).not.toBe(before.id.cert)
    expect(after.id.key).not.toBe(before.id.key)
    expect(after.ztAPI).toBe(before.ztAPI)
    expect(after.id.ca).toContain(network.rootPem)
    expect((await signInByFile(network, file)).body.data.identity.id).toBe(identityId)
    expect(readdirSync(folder).sort()).toEqual(['laptop.json', 'laptop.jwt'])
  })

  it('ends the validity of the old certificate', async () => {
    const { file, folder } = await enrolledFile(network)
    const copy = join(folder, 'copy.json')
    writeFileSync(copy, readFileSync(file))

    await renew(file)

    expect(await statusOf(copy)).toBe(401)
  })

  it('keeps the key by a flag', async () => {
    const { file } = await enrolledFile(network)
    const before = readIdentityFileText(file)

    const { stdout } = await renew(file, '--keep-key', '-o', 'json')

    const after = readIdentityFileText(file)
    expect(after.id.key).toBe(before.id.key)
    expect(after.id.cert).not.toBe(before.id.cert)
    expect(JSON.parse(stdout)).toMatchObject({ hasNewKey: false, isRenewed: true })
    expect(await statusOf(file)).toBe(200)
  })

  it('can be repeated', async () => {
    const { file } = await enrolledFile(network)

    const codes = [await renew(file), await renew(file), await renew(file)].map(({ code }) => code)

    expect(codes).toEqual([0, 0, 0])
    expect(await statusOf(file)).toBe(200)
  })

  it('does not ask for a second factor if the certificate is not due', async () => {
    const { file, identityId } = await enrolledFile(network)
    const authPolicyId = await network.people.policy({ requireTotp: true })
    await network.people.manage('PATCH', `/identities/${identityId}`, { authPolicyId })

    const early = await renew(file, '--within', '1d')
    const due = await renew(file, '--within', '400d')

    expect([early.code, early.stdout]).toEqual([0, expect.stringMatching(/is not due/)])
    expect(due.code).toBe(4)
    const filter = encodeURIComponent(`identity = "${identityId}"`)
    expect(await network.people.manage('GET', `/api-sessions?filter=${filter}`)).toHaveLength(1)
  })

  it('leaves no session behind', async () => {
    const { file, identityId } = await enrolledFile(network)

    await renew(file, '--within', '1d')
    await renew(file)

    const sessions = await network.people.manage(
      'GET',
      `/api-sessions?filter=${encodeURIComponent(`identity = "${identityId}"`)}`,
    )
    expect(sessions).toEqual([])
  })

  it('keeps members that only an SDK knows, the mode of the file, and a symbolic link to it', async () => {
    const { file, folder } = await enrolledFile(network)
    const content = { ...readIdentityFileText(file), configTypes: ['ziti-tunneler-client.v1'], enableHa: false }
    writeFileSync(file, JSON.stringify(content))
    chmodSync(file, 0o640)
    const link = join(folder, 'link.json')
    symlinkSync('laptop.json', link)

    await renew(link)

    expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({
      configTypes: ['ziti-tunneler-client.v1'],
      enableHa: false,
    })
    expect(statSync(file).mode & 0o777).toBe(0o640)
    expect(readdirSync(folder).sort()).toEqual(['laptop.json', 'laptop.jwt', 'link.json'])
    expect(await statusOf(link)).toBe(200)
  })

  it('is private to its owner and its group afterwards', async () => {
    const { file } = await enrolledFile(network)
    chmodSync(file, 0o644)

    await renew(file)

    expect(statSync(file).mode & 0o777).toBe(0o640)
    expect(await statusOf(file)).toBe(200)
  })

  it.skipIf(lacks('root, who can act as another account', process.geteuid?.() === 0))(
    'stays with the account that owns it if root renews it',
    async () => {
      const { file } = await enrolledFile(network)
      chownSync(file, 12_345, 12_345)

      await renew(file)

      const { uid, gid, mode } = statSync(file)
      expect([uid, gid, mode & 0o777]).toEqual([12_345, 12_345, 0o600])
    },
  )

  it('is described for programs', async () => {
    const { file } = await enrolledFile(network)
    const before = certificateIn(file)

    const { stdout } = await renew(file, '-o', 'json')

    const print = ({ fingerprint }: X509Certificate) => fingerprint.replaceAll(':', '').toLowerCase()
    expect(JSON.parse(stdout)).toEqual({
      identityFile: file,
      url: network.url,
      fingerprint: print(certificateIn(file)),
      expiresAt: new Date(certificateIn(file).validTo).toISOString(),
      previousFingerprint: print(before),
      previousExpiresAt: new Date(before.validTo).toISOString(),
      hasNewKey: true,
      isRenewed: true,
    })
  })
})

describe('a script that runs daily', () => {
  it('renews only what expires soon', async () => {
    const { file } = await enrolledFile(network)
    const before = readFileSync(file, 'utf8')

    const early = await renew(file, '--within', '30d', '-o', 'json')
    const unchanged = readFileSync(file, 'utf8')
    const due = await renew(file, '--within', '400d', '-o', 'json')

    expect(JSON.parse(early.stdout)).toMatchObject({ isRenewed: false, identityFile: file })
    expect(unchanged).toBe(before)
    expect(JSON.parse(due.stdout)).toMatchObject({ isRenewed: true })
  })

  it('renews what an administrator requests, and a login names the command', async () => {
    const { file, identityId } = await enrolledFile(network)
    await network.people.manage('POST', `/identities/${identityId}/request-extend`, { rollKeys: true })

    const login = await commandLine(['login', '--identity', file], env)
    const renewed = await renew(file, '--within', '1d', '-o', 'json')
    const again = await renew(file, '--within', '1d', '-o', 'json')

    expect(login.stderr).toContain(`controller renew ${file}`)
    expect([renewed, again].map(({ stdout }) => JSON.parse(stdout).isRenewed)).toEqual([true, false])
  })

  it('is told about a duration that is not one', async () => {
    const { file } = await enrolledFile(network)

    expectRefused(await renew(file, '--within', 'soon'), 2, /--within is not a time/)
  })
})

describe('a renewal that is interrupted', () => {
  let enrolled: EnrolledFile
  let pending: string

  beforeEach(async () => {
    enrolled = await enrolledFile(network)
    pending = `${enrolled.file}.pending`
  })

  it('before the controller confirms it leaves a file that works, and can be repeated', async () => {
    behavior = 'hangs before'
    await killDuringConfirmation(enrolled.file)

    const status = await statusOf(enrolled.file)
    const { code } = await renew(enrolled.file)

    expect([status, code, await statusOf(enrolled.file)]).toEqual([200, 0, 200])
    expect(existsSync(pending)).toBe(false)
  })

  it('after the controller confirmed it leaves both, and is completed by the next command', async () => {
    behavior = 'hangs after'
    await killDuringConfirmation(enrolled.file)

    const statuses = [await statusOf(enrolled.file), await statusOf(pending)]
    const login = await commandLine(['login', '--identity', enrolled.file], env)
    const renewed = await renew(enrolled.file)

    expect(statuses).toEqual([401, 200])
    expectRefused(login, 4, /the renewal of the certificate in .* was interrupted\nTry: controller renew /)
    expect(renewed.code).toBe(0)
    expect(await statusOf(enrolled.file)).toBe(200)
    expect(existsSync(pending)).toBe(false)
    expect(statSync(enrolled.file).mode & 0o777).toBe(0o600)
  })

  it('by a lost response is completed by the next command', async () => {
    expectFaults(/TIMEOUT/)
    behavior = 'fails after'
    const failed = await renew(enrolled.file)
    behavior = 'succeeds'

    const { code } = await renew(enrolled.file)

    expectRefused(failed, 8, /the renewal of .*laptop\.json is not complete\nTry: controller renew /)
    expect([code, await statusOf(enrolled.file)]).toEqual([0, 200])
    expect(existsSync(pending)).toBe(false)
  })

  it('keeps the new certificate while the identity is disabled', async () => {
    expectFaults(/TIMEOUT/)
    behavior = 'fails after'
    await renew(enrolled.file)
    behavior = 'succeeds'
    await network.people.manage('POST', `/identities/${enrolled.identityId}/disable`, { durationMinutes: 5 })

    const disabled = await renew(enrolled.file)
    await network.people.manage('POST', `/identities/${enrolled.identityId}/enable`)
    const enabled = await renew(enrolled.file)

    expect([disabled.code, enabled.code, await statusOf(enrolled.file)]).toEqual([4, 0, 200])
  })

  it('by Ctrl-C warns first, and can be completed', async () => {
    behavior = 'hangs after'
    const child = spawn(process.execPath, [BINARY, 'renew', enrolled.file], {
      env,
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    let text = ''
    child.stderr.on('data', (chunk: Buffer) => {
      text += chunk.toString()
    })
    const ended = new Promise((resolve) => child.on('close', resolve))
    await expect.poll(() => confirmations, { timeout: 20_000 }).toBe(1)
    child.kill('SIGINT')
    await expect.poll(() => text).toMatch(/press Ctrl-C again/)
    child.kill('SIGINT')
    const code = await ended
    release()
    behavior = 'succeeds'

    const completed = await renew(enrolled.file)

    expect([code, completed.code, await statusOf(enrolled.file)]).toEqual([130, 0, 200])
  })
})

describe('what cannot be renewed', () => {
  it('is a file that refers to its key elsewhere', async () => {
    const { file, folder } = await enrolledFile(network)
    const { id, ...content } = readIdentityFileText(file)
    const key = join(folder, 'laptop.key')
    writeFileSync(key, id.key.slice(4))
    writeFileSync(file, JSON.stringify({ ...content, id: { ...id, key: `file://${key}` } }))

    expectRefused(await renew(file), 2, /refers to the files of its certificate and key/)
  })

  it('is a file without the authorities of its controller', async () => {
    const { file } = await enrolledFile(network)
    const { id, ...content } = readIdentityFileText(file)
    const { ca: _omitted, ...rest } = id
    writeFileSync(file, JSON.stringify({ ...content, id: rest }))

    expectRefused(await renew(file), 2, /id\.ca is missing/)
  })

  it('is what is not an identity file, or does not exist', async () => {
    const { file } = await enrolledFile(network)
    writeFileSync(file, 'hello')

    expectRefused(await renew(file), 2, /is not an identity file/)
    expectRefused(await renew('/nowhere.json'), 2, /cannot be read/)
  })

  it('is the file of an identity that does not exist any more: it stays', async () => {
    const { file, identityId } = await enrolledFile(network)
    const before = readFileSync(file, 'utf8')
    await network.people.manage('DELETE', `/identities/${identityId}`)

    expectRefused(await renew(file), 4, /the certificate in .* is not accepted\nTry: ask an administrator/)

    expect(readFileSync(file, 'utf8')).toBe(before)
  })

  it('is any file while an adopted network is on trial: the message says so, and until when', async () => {
    const trialEnds = new Date(Date.now() + 30 * 24 * 60 * 60_000).toISOString()
    const onTrial = await reachableController({ settings: { 'adoption.trialEnds': trialEnds } })
    try {
      const { file } = await enrolledFile(onTrial)
      const before = readFileSync(file, 'utf8')

      expectRefused(await renew(file), 8, new RegExp(`on trial until ${trialEnds}\nTry: run it again after that time`))

      expect(readFileSync(file, 'utf8')).toBe(before)
    } finally {
      await onTrial.stop()
    }
  })
})

it('two renewals at once leave a file that works', async () => {
  const { file } = await enrolledFile(network)
  const start = () =>
    new Promise<number | null>((resolve) =>
      spawn(process.execPath, [BINARY, 'renew', file], { env, stdio: 'ignore' }).on('close', resolve),
    )

  const codes = await Promise.all([start(), start(), start()])

  expect(codes.filter((code) => code === 0).length).toBeGreaterThanOrEqual(1)
  expect(await statusOf(file)).toBe(200)
})
