// Dry runs: the controller judges a change by every rule, says who would gain or lose access, and changes nothing.
import { beforeAll, describe, expect, it } from 'vitest'
import { cleanEnvironment } from '../world/binary.ts'
import { commandLine } from '../world/command-line.ts'
import { CLIENT, MANAGEMENT } from '../world/controller.ts'
import { writeProfiles } from '../world/profiles.ts'
import { createStaffPolicy } from '../world/staff-policy.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
let token: string
const env = cleanEnvironment()
const headers = { 'controller-dry-run': 'true' }

beforeAll(async () => {
  const { url, rootPem } = await world.listen()
  token = await world.admin()
  writeProfiles(env, { test: { url, rootPem, token } })
  await cli('identity', 'create', 'laptop', '--role', 'staff')
  await cli('service', 'create', 'web', '--role', 'web')
  await createStaffPolicy(cli, 'use')
})

const cli = (...args: string[]) => commandLine(args, env)

/** Everything that a change would leave: rows, audit records, and the last numbers of both. */
async function readState(): Promise<unknown> {
  const { db } = world.controller.store
  const audit = await db.selectFrom('audit_records').select('n').execute()
  const services = await db.selectFrom('services').selectAll().execute()
  const policies = await db.selectFrom('service_policies').selectAll().execute()
  const identities = await db.selectFrom('identities').select(['id', 'name', 'roleAttributes', 'disabledAt']).execute()
  return { audit: audit.length, services, policies, identities }
}

describe('a request with the header of a dry run', () => {
  it.each([
    ['POST', '/services', { name: 'new', encryptionRequired: true }, 201],
    ['POST', '/services', { name: 'web', encryptionRequired: true }, 400],
    ['POST', '/services', { name: 'new' }, 400],
  ])('%s %s is judged by every rule, and leaves nothing', async (method, path, body, status) => {
    const before = await readState()

    const response = await world.send({ method, path: MANAGEMENT + path, token, headers, body })

    expect(response.status).toBe(status)
    expect(await readState()).toEqual(before)
  })

  it('is refused by an operation whose effects cannot be rolled back, and by the client API', async () => {
    const before = await readState()

    const renewal = await world.send({ method: 'POST', path: `${MANAGEMENT}/controller/pki/renew`, token, headers })
    const login = await world.send({
      method: 'POST',
      path: `${CLIENT}/authenticate?method=password`,
      headers,
      body: {},
    })

    for (const { status, body } of [renewal, login]) {
      expect(status).toBe(400)
      expect(body.error.cause.field).toBe('controller-dry-run')
    }
    expect(await readState()).toEqual(before)
  })

  it('needs the right of the change', async () => {
    const jane = await world.signIn({ name: 'jane' })
    const body = { name: 'new', encryptionRequired: true }

    const response = await world.send({
      method: 'POST',
      path: `${MANAGEMENT}/services`,
      token: jane.token,
      headers,
      body,
    })

    expect(response.status).toBe(401)
  })

  it('must say true or false', async () => {
    const body = { name: 'new', encryptionRequired: true }
    const other = { 'controller-dry-run': 'maybe' }

    const response = await world.send({ method: 'POST', path: `${MANAGEMENT}/services`, token, headers: other, body })

    expect(response.status).toBe(400)
  })

  it.each(['true', 'maybe'])('is ignored by a request that reads (%s)', async (value) => {
    const other = { 'controller-dry-run': value }

    const response = await world.send({ method: 'GET', path: `${MANAGEMENT}/services`, token, headers: other })

    expect(response.status).toBe(200)
  })
})

describe('--dry-run', () => {
  it.each<[string, string[], RegExp]>([
    [
      'a new policy',
      ['service-policy', 'create', 'more', '--type', 'Bind', '--identity-roles', '#staff', '--service-roles', '#web'],
      /Would create service policy more\. Nothing was changed\.\n1 identity would gain the right to 1 service \(laptop\)/,
    ],
    [
      'a deletion',
      ['service-policy', 'delete', 'use'],
      /Would delete service policy use\. Nothing was changed\.\n1 identity would lose the right to 1 service/,
    ],
    [
      'a change',
      ['identity', 'update', 'laptop', '--role', 'abroad'],
      /Would update identity laptop\. Nothing was changed\.\nIt would remove: role staff\.\n1 identity would lose/,
    ],
    [
      'a new service',
      ['service', 'create', 'mail', '--role', 'web'],
      /Would create service mail\. Nothing was changed\.\n1 identity would gain/,
    ],
    [
      'something that policies do not concern',
      ['auth-policy', 'create', 'strict'],
      /Would create auth policy strict\. Nothing was changed\.\n$/,
    ],
    ['several records', ['service', 'delete', '--all'], /Would delete service web\. Nothing was changed\./],
  ])('of %s says what it would do, and changes nothing', async (_what, args, text) => {
    const before = await readState()

    const { code, stdout, stderr } = await cli(...args, '--dry-run')

    expect(stdout, stderr).toMatch(text)
    expect(code).toBe(0)
    expect(await readState()).toEqual(before)
  })

  it('fails as the change would', async () => {
    const { code, stderr } = await cli('service', 'create', 'web', '--dry-run')

    expect(code).toBe(6)
    expect(stderr).toMatch(/name "\S+" is taken/)
  })

  it('gives programs the same facts', async () => {
    const { stdout } = await cli('service-policy', 'delete', 'use', '--dry-run', '-o', 'json')

    expect(JSON.parse(stdout)).toMatchObject({ dryRun: true, impact: { loses: { identities: 1, services: 1 } } })
  })
})
