// Every administrator is locked out: a restart prints a token, and an operator with the data directory restores access.
import { writeFileSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { hasUsableAdministrator } from '../../src/authentication/administrators/administrators.ts'
import { decodeBootstrap } from '../../src/authentication/administrators/bootstrap-codec.ts'
import { disableIdentity } from '../../src/authentication/disabling.ts'
import { authenticators } from '../../src/definitions/resources/authenticators.ts'
import { identities } from '../../src/definitions/resources/identities.ts'
import { createBootstrapToken } from '../../src/initialize.ts'
import { get } from '../../src/storage/entities/entities.ts'
import { lockDirectory } from '../../src/storage/sqlite/directory-lock.ts'
import { cleanEnvironment, controller } from '../world/binary.ts'
import { ADMIN, CLIENT, type TestController, testController } from '../world/controller.ts'
import { People } from '../world/people.ts'
import { useControllerPerTest } from '../world/use-controller.ts'

const world = useControllerPerTest()

async function firstAdministrator(): Promise<string> {
  const query = world.controller.store.db.selectFrom('identities').select('id').where('isDefaultAdmin', '=', 1)
  return (await query.executeTakeFirstOrThrow()).id
}

async function signIn(
  credentials: { username: string; password: string },
  at: TestController = world,
): Promise<number> {
  const { username, password } = credentials
  const path = `${CLIENT}/authenticate?method=password`
  return (await at.send({ method: 'POST', path, body: { username, password } })).status
}

/** Ways in which no administrator can get in any more. Callers are refused those that no policy decides: the system is not. */
const disasters: Readonly<Record<string, (id: string) => Promise<unknown>>> = {
  'is disabled': (id) => world.system.write((tx) => disableIdentity(world.controller.entities, tx, id, 0)),
  'has lost its password': async (id) => {
    const { db } = world.controller.store
    const row = await db
      .selectFrom('authenticators')
      .select('id')
      .where('identityId', '=', id)
      .executeTakeFirstOrThrow()
    await world.system.write((tx) => world.controller.entities.removeInTransaction(tx, authenticators, row.id))
  },
  'is under a policy closed to passwords': async (id) => underPolicy(id, { updb: { allowed: false } }),
  'administers no more': (id) =>
    world.system.write(async (tx) =>
      world.controller.entities.update(tx, identities, await get(tx, identities, id), { isAdmin: false }),
    ),
}

async function underPolicy(id: string, words: Parameters<People['policy']>[0]) {
  const authPolicyId = await (await People.in(world)).policy(words)
  const { entities } = world.controller
  await world.system.write(async (tx) =>
    entities.update(tx, identities, await get(tx, identities, id), { authPolicyId }),
  )
}

describe.each(Object.keys(disasters))('the only administrator %s', (disaster) => {
  it('and a restart offers a token by which it gets in again', async () => {
    const usableBefore = await hasUsableAdministrator(world.system)
    await disasters[disaster]?.(await firstAdministrator())
    const usable = await hasUsableAdministrator(world.system)
    const { token } = decodeBootstrap(await createBootstrapToken(world.controller)) ?? {}

    const path = `${CLIENT}/enroll?method=updb&token=${token}`
    const response = await world.send({
      method: 'POST',
      path,
      body: { username: 'back again', password: 'a fresh start' },
    })

    expect([usableBefore, usable, response.status, await hasUsableAdministrator(world.system)]).toEqual([
      true,
      false,
      200,
      true,
    ])
    const session = await world.send({
      method: 'POST',
      path: `${CLIENT}/authenticate?method=password`,
      body: { username: 'back again', password: 'a fresh start' },
    })
    const { body } = await world.send({
      method: 'GET',
      path: '/edge/management/v1/identities',
      token: session.body.data.token,
    })
    expect(body.error).toBeUndefined()
  })
})

describe('controller admin recover', () => {
  function recover(...args: string[]) {
    const file = join(world.directory, '../password')
    writeFileSync(file, 'a fresh start\n')
    const allArguments = ['--data-dir', world.directory, '--password-file', file, ...args]
    return controller(['admin', 'recover', ...allArguments], cleanEnvironment())
  }

  it('lets the first administrator in, and writes down who did it', async () => {
    await disasters['is disabled']?.(await firstAdministrator())
    await world.stop()

    const { code, stdout, stderr } = await recover('--username', 'back again')

    const again = await testController({ directory: world.directory })
    const records = await again.controller.store.db
      .selectFrom('audit_records')
      .select(['actorKind', 'actorName', 'operation', 'resource'])
      .where('actorKind', '=', 'local')
      .execute()
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(/Restored the access of Default Admin/)
    expect(stdout).toMatch(/it is enabled again/)
    expect([
      await signIn(ADMIN, again),
      await signIn({ username: 'back again', password: 'a fresh start' }, again),
    ]).toEqual([401, 200])
    expect(new Set(records.map(({ actorName }) => actorName))).toEqual(new Set([userInfo().username]))
    expect(records.map(({ operation, resource }) => `${operation} ${resource}`)).toEqual([
      'delete authenticators',
      'create authenticators',
      'update identities',
    ])
    await again.stop()
  })

  it('lets another identity in by its name, and promotes it only if told to', async () => {
    const people = await People.in(world)
    const { id } = await people.person({ name: 'second in command' })
    await world.stop()

    const refused = await recover('second in command', '--username', 'second')
    const name = ['second in command', '--make-administrator']
    const { code, stdout } = await recover(...name, '--username', 'second', '-o', 'json')

    expect([refused.code, refused.stderr]).toEqual([
      7,
      expect.stringMatching(/second in command is not an administrator.*\nTry: --make-administrator/),
    ])

    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({ identityId: id, identityName: 'second in command', username: 'second' })
  })

  it('does not wait: it is refused while a controller runs', async () => {
    const unlock = lockDirectory(world.directory)

    const { code, stderr } = await recover('--username', 'back again')

    unlock()
    expect([code, stderr]).toEqual([8, expect.stringMatching(/stop it first/)])
  })

  it.each([
    ['a short username', ['--username', 'abc'], 2],
    ['an identity that is not there', ['unknown', '--username', 'back again'], 5],
    ['no username without a terminal', [], 2],
  ])('is refused with %s', async (_what, args, expected) => {
    await world.stop()

    const { code, stdout } = await recover(...args)

    expect([code, stdout]).toEqual([expected, ''])
  })

  it('is refused a username that another identity has', async () => {
    const people = await People.in(world)
    const { username } = await people.person()
    await world.stop()

    const { code, stderr } = await recover('--username', username)

    expect([code, stderr]).toEqual([6, expect.stringMatching(/username is taken/)])
  })
})
