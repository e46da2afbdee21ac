// `controller external-jwt-signer`: signers made and named as people do, and the test of a token that explains itself.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { cleanEnvironment, type Finished } from '../world/binary.ts'
import { commandLine } from '../world/command-line.ts'
import { testController } from '../world/controller.ts'
import { authorityFile, json, openEndpoint } from '../world/endpoints.ts'
import { AUDIENCE, createIssuerKey, Issuer, toJwk } from '../world/issuers.ts'
import { People } from '../world/people.ts'
import { writeProfiles } from '../world/profiles.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
let people: People
let issuer: Issuer
let folder: string
const env = cleanEnvironment()

beforeAll(async () => {
  people = await People.in(world)
  const { url, rootPem } = await world.listen()
  folder = env.HOME as string
  writeProfiles(env, { test: { url, rootPem, token: people.token } as never })
  issuer = new Issuer()
  writeFileSync(join(folder, 'signer.pem'), issuer.certificate())
})

const run = (...args: string[]): Promise<Finished> => commandLine(['external-jwt-signer', ...args], env)

/** Runs the test of a token. Returns the exit code, and the marks and messages by check. */
async function testToken(token: string, ...args: string[]) {
  writeFileSync(join(folder, 'token.jwt'), `${token}\n`)
  const { code, stdout, stderr } = await run('test', 'keycloak', '--token-file', join(folder, 'token.jwt'), ...args)
  expect(stderr).toBe('')
  expect(stdout).not.toContain(token.split('.')[2])
  const lines = stdout.split('\n').map((line) => line.trim().split(/\s{1,}/))
  return { code, stdout, marks: Object.fromEntries(lines.map(([mark = '', check = '']) => [check, mark])) }
}

describe('external-jwt-signer', () => {
  it('create makes a signer from flags, with the certificate from a file', async () => {
    const flags = ['--issuer', issuer.issuer, '--audience', AUDIENCE, '--kid', issuer.key.kid, '--use-external-id']
    const created = await run('create', 'keycloak', ...flags, '--cert-pem', `@${join(folder, 'signer.pem')}`)
    const view = await run('get', 'keycloak', '-o', 'json')

    expect([created.code, created.stderr]).toEqual([0, expect.stringContaining('Created external jwt signer keycloak')])
    expect(JSON.parse(view.stdout)).toMatchObject({
      name: 'keycloak',
      enabled: true,
      useExternalId: true,
      keyStatus: { keyIds: [issuer.key.kid] },
    })
  })

  it('is named by its name in auth policies', async () => {
    const created = await commandLine(
      ['auth-policy', 'create', 'by token', '--primary-ext-jwt-allowed-signers', 'keycloak'],
      env,
    )
    const { stdout } = await commandLine(['auth-policy', 'get', 'by token', '-o', 'json'], env)
    const { id } = JSON.parse((await run('get', 'keycloak', '-o', 'json')).stdout)

    expect(created.code).toBe(0)
    expect(JSON.parse(stdout).primary.extJwt.allowedSigners).toEqual([id])
  })
})

describe('external-jwt-signer test', () => {
  it('accepts a good token, and says what decides each check', async () => {
    await people.identity({ name: 'laptop', externalId: 'subject' })

    const { code, stdout, marks } = await testToken(issuer.token(world, 'subject'))

    expect(code).toBe(0)
    expect(stdout).toContain('keycloak: the token is accepted')
    expect(stdout).toMatch(/audience +"the controller under test" contains the controller under test/)
    expect(stdout).toMatch(/identity +"subject" is the external id of laptop/)
    expect(stdout).toMatch(/auth-policy +auth policy Default accepts tokens of keycloak/)
    expect(new Set(Object.entries(marks).flatMap(([check, mark]) => (check.includes('-') ? mark : [])))).toEqual(
      new Set(['✓']),
    )
  })

  it.each([
    ['format', () => 'nonsense', /not a signed JWT/],
    ['kid', () => issuer.token(world, 'subject', { header: { kid: undefined } }), /no kid/],
    ['issuer', () => new Issuer().token(world, 'subject'), /is not the issuer of a signer/],
    ['key', () => issuer.token(world, 'subject', { header: { kid: 'other' } }), /"other" is not a key of keycloak/],
    [
      'signature',
      () => issuer.token(world, 'subject', { key: { ...createIssuerKey(), kid: issuer.key.kid } }),
      /not by a key of keycloak/,
    ],
    ['audience', () => issuer.token(world, 'subject', { claims: { aud: 'other' } }), /"aud"/],
    ['expiration', () => issuer.token(world, 'subject', { claims: { exp: undefined } }), /no exp/],
    ['identity-claim', () => issuer.token(world, 'subject', { claims: { sub: 7 } }), /no text in the claim sub/],
    ['identity', () => issuer.token(world, 'stranger'), /no identity has the external id "stranger"/],
  ])('exits with 3 and names the check %s', async (check, makeToken, message) => {
    const { code, stdout, marks } = await testToken(makeToken())

    expect(code).toBe(3)
    expect(stdout).toContain('keycloak: the token is rejected')
    expect(stdout).toMatch(message)
    expect(marks[check]).toBe('✗')
    expect(marks['auth-policy']).toBe('-')
  })

  it('says that the token is of another signer', async () => {
    const other = new Issuer()
    await other.trustedBy(people, { name: 'okta' })

    const { code, stdout } = await testToken(other.token(world, 'subject'))

    expect(code).toBe(3)
    expect(stdout).toMatch(/✗ issuer +.* is the issuer of okta/)
  })

  it('says that the identity is disabled, and that its auth policy does not accept the signer', async () => {
    const other = await new Issuer().trustedBy(people)
    const authPolicyId = await people.policy({ extJwt: { allowedSigners: [other] } })
    await people.identity({ name: 'strict', externalId: 'strict', authPolicyId })
    const disabled = await people.identity({ name: 'gone', externalId: 'gone' })
    await people.manage('POST', `/identities/${disabled}/disable`, { durationMinutes: 0 })

    const strict = await testToken(issuer.token(world, 'strict'))
    const result = await testToken(issuer.token(world, 'gone'))

    expect(strict.stdout).toMatch(/✗ auth-policy +.* does not accept tokens of keycloak as a first factor/)
    expect(result.stdout).toMatch(/✗ identity-enabled +gone is disabled/)
  })

  it('is a record for scripts', async () => {
    const { code, stdout } = await testToken(issuer.token(world, 'stranger'), '-o', 'json')

    const result = JSON.parse(stdout)
    expect(code).toBe(3)
    expect(result.accepted).toBe(false)
    expect(result.checks).toContainEqual({ check: 'identity', outcome: 'failed', message: expect.any(String) })
  })

  it('works on the data directory while no controller runs', async () => {
    const authority = authorityFile()
    const endpoint = await openEndpoint(json({ keys: [toJwk(issuer.key)] }))
    const other = await testController()
    const theirs = await People.in(other)
    await issuer.trustedBy(theirs, { name: 'keycloak', jwksEndpoint: endpoint.url })
    await theirs.identity({ name: 'laptop', externalId: 'subject' })
    await other.stop()
    const where = ['--offline', '--data-dir', other.directory]
    writeFileSync(join(folder, 'token.jwt'), issuer.token(other, 'subject'))
    const words = ['external-jwt-signer', 'test', 'keycloak', '--token-file', join(folder, 'token.jwt')]

    const { code, stdout } = await commandLine([...words, ...where], {
      ...env,
      CONTROLLER_SIGNERS_CA_FILE: authority.path,
    })

    expect([code, stdout]).toEqual([0, expect.stringContaining('the token is accepted')])
    await endpoint.close()
    authority.remove()
  })
})
