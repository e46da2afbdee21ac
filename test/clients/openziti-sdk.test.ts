// OpenZiti's own C SDK, unmodified, from its Python package: it enrolls, signs in and lists its services here.
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Client } from '../../commands/client/client.ts'
import { createHttpTransport } from '../../src/client/http-transport.ts'
import { permissivePolicy } from '../../src/definitions/resources/auth-policies.ts'
import { cleanEnvironment, controller, run, type Served, serve } from '../world/binary.ts'
import { findFreePort } from '../world/free-port.ts'
import { hasPython, installPackage } from '../world/python.ts'
import { createStaffPolicy } from '../world/staff-policy.ts'

const PACKAGE = 'openziti==0.6.0'
const matches = await hasPython()

async function succeed(step: Promise<{ code: number | null; stdout: string; stderr: string }>): Promise<string> {
  const { code, stdout, stderr } = await step
  expect(`${stderr}${code === 0 ? '' : `\nexit code ${code}`}`).not.toMatch(/exit code/)
  return stdout
}

describe.skipIf(!matches)('an unmodified C SDK', () => {
  const work = mkdtempSync(join(tmpdir(), 'clients-'))
  const env = cleanEnvironment(work)
  const data = join(work, 'data')
  let served: Served
  let python = ''

  const cli = (...args: string[]) => succeed(controller(args, env))
  const file = (name: string) => join(work, name)

  beforeAll(async () => {
    python = join(await installPackage(PACKAGE), 'python')
    writeFileSync(file('password'), 'correct horse battery\n')
    const listen = `127.0.0.1:${await findFreePort()}`
    const admin = ['--admin-username', 'admin', '--admin-password-file', file('password')]
    await cli('init', '--data-dir', data, '--listen', listen, ...admin)
    served = await serve(['--data-dir', data], env)
    await cli('login', served.url, '--username', 'admin', '--password-file', file('password'), '--yes')
    for (const [name, role] of [
      ['laptop', 'staff'],
      ['phone', 'guest'],
    ] as const) {
      writeFileSync(file(`${name}.jwt`), await cli('identity', 'create', name, '--role', role, '-o', 'jwt'))
    }
    await cli('service', 'create', 'web', '--role', 'web')
    await cli('service', 'create', 'database', '--role', 'database')
    await createStaffPolicy(cli, 'staff-web')
  })
  afterAll(() => served?.stop())

  /** The log of the SDK while it loads an identity and tries to reach both services, until it logs `until`. */
  async function sdkLog(identity: string, until: RegExp): Promise<string> {
    const args = [join(import.meta.dirname, 'reach.py'), file(`${identity}.json`), 'database', 'web']
    const { stderr, stdout } = await run(python, args, { ...env, ZITI_LOG: '4' }, { until })
    return stderr + stdout
  }

  /** Gets an identity disabled: by a lockout, after one wrong password under a policy that bears none. */
  async function lockOut(name: string) {
    const rootPem = readFileSync(join(data, 'pki/root.crt'), 'utf8')
    const transport = createHttpTransport({ url: served.url, rootPem })
    const signIn = (username: string, password: string) =>
      new Client(transport).call('POST', '/authenticate?method=password', { username, password })
    const { token } = (await signIn('admin', 'correct horse battery')).data as { token: string }
    const admin = new Client(transport, { token })
    const make = async (path: string, body: object) =>
      ((await admin.call('POST', path, body)).data as { id: string }).id
    const { cert, extJwt, updb } = permissivePolicy.primary
    const primary = { cert, extJwt, updb: { ...updb, maxAttempts: 1 } }
    const authPolicyId = await make('/auth-policies', { name: 'bears no mistake', ...permissivePolicy, primary })
    const filter = encodeURIComponent(`name = "${name}"`)
    const [identity] = (await admin.call('GET', `/identities?filter=${filter}`)).data as { id: string }[]
    const identityId = identity?.id ?? ''
    await admin.call('PATCH', `/identities/${identityId}`, { authPolicyId })
    await make('/authenticators', { identityId, method: 'updb', username: name, password: 'correct horse battery' })
    await signIn(name, 'wrong horse').catch(() => undefined)
    await transport.close()
  }

  it.each(['laptop', 'phone'])('enrolls the identity %s', async (name) => {
    await succeed(
      run(python, ['-m', 'openziti', 'enroll', '--jwt', file(`${name}.jwt`), '--identity', file(`${name}.json`)], env),
    )

    expect(JSON.parse(readFileSync(file(`${name}.json`), 'utf8')).ztAPI).toBe(served.url)
  })

  it('sees the service that a policy grants, and not the other', async () => {
    const log = await sdkLog('laptop', /get session for service\[web\]/)

    expect(log).toMatch(/logged in successfully/)
    expect(log).toMatch(/received 1\/1 for paging request GET\[\/services\]/)
    // The SDK asks the controller for a session only of what it was shown.
    expect(log).not.toMatch(/get session for service\[database\]/)
  })

  it('sees none without a policy', async () => {
    // Without any service the SDK goes on waiting for one.
    const log = await sdkLog('phone', /completed paging request GET\[\/services\]/)

    expect(log).toMatch(/logged in successfully/)
    expect(log).toMatch(/received 0\/0 for paging request GET\[\/services\]/)
  })

  it('signs in with the identity file of the command line, before and after its renewal', async () => {
    writeFileSync(file('tablet.jwt'), await cli('identity', 'create', 'tablet', '--role', 'staff', '-o', 'jwt'))
    await cli('enroll', file('tablet.jwt'))
    const enrolled = await sdkLog('tablet', /completed paging request GET\[\/services\]/)

    await cli('renew', file('tablet.json'))
    const renewed = await sdkLog('tablet', /completed paging request GET\[\/services\]/)

    expect(enrolled).toMatch(/logged in successfully/)
    expect(renewed).toMatch(/logged in successfully/)
    expect(renewed).toMatch(/received 1\/1 for paging request GET\[\/services\]/)
  })

  it('signs in again after the controller was restarted', async () => {
    await served.stop()
    served = await serve(['--data-dir', data], env)

    const log = await sdkLog('laptop', /completed paging request GET\[\/services\]/)

    expect(log).toMatch(/logged in successfully/)
    expect(log).toMatch(/received 1\/1 for paging request GET\[\/services\]/)
  })

  it('is refused once its identity was disabled', async () => {
    await lockOut('laptop')

    const log = await sdkLog('laptop', /INVALID_AUTH|logged in successfully/)

    expect(log).toMatch(/INVALID_AUTH/)
    expect(log).not.toMatch(/logged in successfully/)
  })
})
