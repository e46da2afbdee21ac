// Commands for certificate authorities: registering one, verifying it by its key, and enrolling with it; online and offline.
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { decodeJwt } from 'jose'
import { beforeAll, describe, expect, it } from 'vitest'
import { issue, makeAuthority, type TestCertificate } from '../world/authorities.ts'
import { cleanEnvironment } from '../world/binary.ts'
import { commandLine } from '../world/command-line.ts'
import { copyOfTemplate } from '../world/controller.ts'
import { writeProfiles } from '../world/profiles.ts'
import { useController } from '../world/use-controller.ts'

const env = cleanEnvironment()
const directory = copyOfTemplate()
const folder = mkdtempSync(join(tmpdir(), 'authorities-'))

const world = useController()
let url: string

beforeAll(async () => {
  const at = await world.listen()
  url = at.url
  const { token } = await world.signIn({ name: 'operator', isAdmin: true })
  writeProfiles(env, { test: { ...at, token } })
})

function file(name: string, content: string): string {
  const path = join(folder, name)
  writeFileSync(path, content)
  return path
}

describe.each([
  ['over HTTPS', () => ['--controller', url]],
  ['offline', () => ['--offline', '--data-dir', directory]],
])('an authority %s', (_way, where) => {
  const cli = (...args: string[]) => commandLine([...args, ...where()], env)
  let authority: TestCertificate
  let cert: string

  beforeAll(async () => {
    authority = await makeAuthority()
    cert = file('ca.pem', authority.pem)
  })

  it('is registered by a file, with defaults that are reported', async () => {
    const { code, stdout, stderr } = await cli('ca', 'create', 'factory', '--cert', cert, '-o', 'json')

    expect(code, stderr).toBe(0)
    expect(stderr).toContain('is-auto-ca-enrollment-enabled false')
    expect(JSON.parse(stdout)).toMatchObject({
      name: 'factory',
      isVerified: false,
      isAuthEnabled: true,
      isOttCaEnrollmentEnabled: true,
      isAutoCaEnrollmentEnabled: false,
      identityRoles: [],
    })
  })

  it('is not verified by another key, an encrypted one, or none', async () => {
    const other = file('other.key', (await makeAuthority()).keyPem)
    const nonsense = file('nonsense.key', 'nonsense')

    const byOther = await cli('ca', 'verify', 'factory', '--ca-key', other)
    const byNonsense = await cli('ca', 'verify', 'factory', '--ca-key', nonsense)
    const byNothing = await cli('ca', 'verify', 'factory')

    expect([byOther.code, byOther.stderr]).toEqual([2, expect.stringContaining('not the key of the authority factory')])
    expect([byNonsense.code, byNonsense.stderr]).toEqual([2, expect.stringContaining('not a private key in PEM')])
    expect([byNothing.code, byNothing.stderr]).toEqual([2, expect.stringContaining('missing flag: --cert or --ca-key')])
  })

  it('is verified by its key, once', async () => {
    const key = file('ca.key', authority.keyPem)

    const first = await cli('ca', 'verify', 'factory', '--ca-key', key, '-o', 'json')
    const second = await cli('ca', 'verify', 'factory', '--ca-key', key)

    expect([first.code, JSON.parse(first.stdout).isVerified], first.stderr).toEqual([0, true])
    expect(first.stdout + first.stderr).not.toContain('PRIVATE KEY')
    expect(second.code).toBe(6)
  })

  it('is verified by a certificate from a file', async () => {
    const own = await makeAuthority('CN=by certificate', { kind: 'RSA-2048' })
    const creation = await cli('ca', 'create', 'by-certificate', '--cert', file('own.pem', own.pem), '-o', 'json')
    const proof = await issue(`CN=${JSON.parse(creation.stdout).verificationToken}`, own)

    const verified = await cli('ca', 'verify', 'by-certificate', '--cert', file('proof.pem', proof.pem))

    expect(verified.code, verified.stderr).toBe(0)
  })

  it('has a JWT, and gives enrollments to new identities by its name', async () => {
    const jwt = await cli('ca', 'jwt', 'factory')
    const identity = await cli('identity', 'create', 'press', '--ottca', 'factory', '-o', 'jwt')

    expect(decodeJwt(jwt.stdout.trim())).toMatchObject({ em: 'ca', aud: ['openziti-enroller'] })
    expect(decodeJwt(identity.stdout.trim())).toMatchObject({ em: 'ottca' })
  })

  it('is deleted with its enrollments', async () => {
    const deleted = await cli('ca', 'delete', 'factory', '--yes')
    const identity = await cli('identity', 'get', 'press', '-o', 'json')

    expect(deleted.code, deleted.stderr).toBe(0)
    expect(JSON.parse(identity.stdout).enrollment).toEqual({})
  })
})
