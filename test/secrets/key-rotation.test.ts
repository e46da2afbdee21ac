// The key of the secrets: made with the database, required by every start, and replaced by a rotation that survives a crash.
import { copyFileSync, existsSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { identities } from '../../src/definitions/resources/identities.ts'
import { mfaEnrollments } from '../../src/definitions/resources/mfa-enrollments.ts'
import { systemClock } from '../../src/foundation/clock.ts'
import { newId } from '../../src/foundation/ids.ts'
import { rotateKeys } from '../../src/rotate-keys.ts'
import { getDataPaths } from '../../src/settings/data-directory.ts'
import { newEntity } from '../../src/storage/entities/entities.ts'
import { beginRotation, loadSecretCipher } from '../../src/storage/secrets/key-files.ts'
import { reencryptSecrets } from '../../src/storage/secrets/stored-secrets.ts'
import { CLIENT, type TestController, testController } from '../world/controller.ts'

const worlds: TestController[] = []
afterEach(() => {
  for (const { directory } of worlds.splice(0)) rmSync(join(directory, '..'), { recursive: true, force: true })
})

const open = async (directory?: string) => testController(directory === undefined ? {} : { directory })

const placeOf = (id: string) => ({ resource: mfaEnrollments.plural, id, field: 'encryptedSecret' })

/** A stopped controller with so many secrets, `secret 0` and so on. */
async function withSecrets(count: number): Promise<TestController> {
  const world = await open()
  worlds.push(world)
  const cipher = loadSecretCipher(getDataPaths(world.directory))
  const { entities } = world.controller
  await world.system.write(async (tx) => {
    for (let at = 0; at < count; at += 1) {
      const identity = newEntity(tx, identities, { name: `identity ${at}`, typeId: 'Default' })
      await entities.insert(tx, identities, identity)
      const id = newId()
      const values = { id, identityId: identity.id, isVerified: true, lastUsedStep: 0 }
      const encryptedSecret = cipher.encrypt(`secret ${at}`, placeOf(id))
      const encryptedRecoveryCodes = cipher.encrypt('[]', { ...placeOf(id), field: 'encryptedRecoveryCodes' })
      const enrollment = newEntity(tx, mfaEnrollments, { ...values, encryptedSecret, encryptedRecoveryCodes })
      await entities.insert(tx, mfaEnrollments, enrollment)
    }
  })
  await world.stop()
  return world
}

async function readCiphertexts({ controller }: TestController) {
  return controller.store.db.selectFrom('mfa_enrollments').select(['id', 'encryptedSecret']).orderBy('n').execute()
}

/** The secrets as the current key alone decrypts them. */
async function readSecrets(directory: string): Promise<string[]> {
  const world = await open(directory)
  const rows = await readCiphertexts(world)
  await world.stop()
  const paths = getDataPaths(directory)
  const cipher = loadSecretCipher({ ...paths, previousSecretsKey: join(directory, 'no-such-file') })
  return rows.map(({ id, encryptedSecret }) => cipher.decrypt(encryptedSecret, placeOf(id)))
}

const expected = (count: number) => Array.from({ length: count }, (_, at) => `secret ${at}`)

const rotate = (directory: string, hasSessions = false) =>
  rotateKeys({ directory, env: {}, clock: systemClock, osUser: 'operator', hasSessions })

describe('the key of the secrets', () => {
  it('is made with the database, for its owner alone', async () => {
    const { directory } = await withSecrets(0)

    const { mode, size } = statSync(getDataPaths(directory).secretsKey)

    expect([(mode & 0o777).toString(8), size]).toEqual(['600', 32])
  })

  it('is asked for by name if it is missing, and no other is made', async () => {
    const { directory } = await withSecrets(1)
    const { secretsKey } = getDataPaths(directory)
    renameSync(secretsKey, `${secretsKey}.away`)

    await expect(open(directory)).rejects.toThrow(`${secretsKey} is missing: restore it`)

    expect(existsSync(secretsKey)).toBe(false)
  })

  it('is refused if it is damaged, or that of another database', async () => {
    const { directory } = await withSecrets(1)
    const { secretsKey } = getDataPaths(directory)

    writeFileSync(secretsKey, 'short')
    await expect(open(directory)).rejects.toThrow('is damaged')
    writeFileSync(secretsKey, Buffer.alloc(32, 7))
    await expect(open(directory)).rejects.toThrow('is not the key of this database')
  })
})

describe('a rotation', () => {
  it('encrypts every secret under a new key, and keeps no other', async () => {
    const { directory } = await withSecrets(260)
    const { secretsKey, previousSecretsKey } = getDataPaths(directory)
    const before = readFileSync(secretsKey)

    await rotate(directory)

    expect(readFileSync(secretsKey).equals(before)).toBe(false)
    expect(existsSync(previousSecretsKey)).toBe(false)
    expect(await readSecrets(directory)).toEqual(expected(260))
  })

  it('is in the audit, with the person at the machine', async () => {
    const { directory } = await withSecrets(0)

    await rotate(directory, true)

    const world = await open(directory)
    const query = world.controller.store.db.selectFrom('audit_records').select(['actorName', 'operation', 'entityId'])
    expect(await query.where('resource', '=', 'keys').orderBy('n').execute()).toEqual([
      { actorName: 'operator', operation: 'update', entityId: 'secrets' },
      { actorName: 'operator', operation: 'update', entityId: 'session-tokens' },
    ])
    await world.stop()
  })

  it('leaves sessions as they are, unless it is to end them', async () => {
    const world = await open()
    worlds.push(world)
    const { directory } = world
    const { token } = await world.signIn()
    const isAlive = async (at: TestController) =>
      (await at.send({ method: 'GET', path: `${CLIENT}/current-api-session`, token })).status === 200
    await world.stop()
    const key = readFileSync(getDataPaths(directory).tokenKey)

    expect(await rotate(directory)).toBe(0)
    const keptWorld = await open(directory)
    expect(await isAlive(keptWorld)).toBe(true)
    await keptWorld.stop()
    expect(readFileSync(getDataPaths(directory).tokenKey).equals(key)).toBe(true)

    expect(await rotate(directory, true)).toBe(1)
    const ended = await open(directory)
    expect(await isAlive(ended)).toBe(false)
    await ended.stop()
    expect(readFileSync(getDataPaths(directory).tokenKey).equals(key)).toBe(false)
  })

  it.each(['a start', 'another rotation'] as const)(
    'that a crash interrupts half way is completed by %s',
    async (next) => {
      const { directory } = await withSecrets(3)
      const paths = getDataPaths(directory)
      const world = await open(directory)
      beginRotation(paths)
      const [first] = await readCiphertexts(world)
      if (!first) throw new Error('there is no secret')
      const encryptedSecret = loadSecretCipher(paths).encrypt('secret 0', placeOf(first.id))
      await world.system.write(({ db }) =>
        db.updateTable('mfa_enrollments').set({ encryptedSecret }).where('id', '=', first.id).execute(),
      )
      await world.stop()

      if (next === 'another rotation') await rotate(directory)

      expect(await readSecrets(directory)).toEqual(expected(3))
      expect(existsSync(paths.previousSecretsKey)).toBe(false)
    },
  )

  it('that a crash interrupts before it ends sessions ends them only if it runs again', async () => {
    const world = await open()
    worlds.push(world)
    const { directory } = world
    await world.signIn()
    await world.stop()
    const paths = getDataPaths(directory)
    const key = readFileSync(paths.tokenKey)
    beginRotation(paths)

    await (await open(directory)).stop()
    expect([existsSync(paths.previousSecretsKey), readFileSync(paths.tokenKey)]).toEqual([false, key])

    expect(await rotate(directory, true)).toBe(1)
    expect(readFileSync(paths.tokenKey)).not.toEqual(key)
  })

  it('replaces the key of TLS tickets, which restarts alone do not', async () => {
    const world = await open()
    worlds.push(world)
    const { directory } = world
    await world.controller.ticketKeys.renewDue(world.system)
    const readKey = async () => {
      const reopened = await open(directory)
      const key = reopened.controller.ticketKeys.current.toString('hex')
      await reopened.stop()
      return key
    }
    const first = world.controller.ticketKeys.current.toString('hex')
    await world.stop()
    const restarted = await readKey()
    await rotate(directory)

    expect(restarted).toBe(first)
    expect(await readKey()).not.toBe(first)
  })

  it('that a crash interrupts between the two files loses no key', async () => {
    const { directory } = await withSecrets(2)
    const { secretsKey, previousSecretsKey } = getDataPaths(directory)
    copyFileSync(secretsKey, previousSecretsKey)

    expect(await readSecrets(directory)).toEqual(expected(2))

    expect(existsSync(previousSecretsKey)).toBe(false)
  })

  it('encrypts only what is not encrypted under the current key', async () => {
    const { directory } = await withSecrets(2)
    const world = await open(directory)
    const cipher = loadSecretCipher(getDataPaths(directory))

    const before = await readCiphertexts(world)
    expect(await reencryptSecrets(world.system, cipher)).toBe(0)

    expect(await readCiphertexts(world)).toEqual(before)
    await world.stop()
  })

  it('does not begin while a controller runs', async () => {
    const world = await open()
    worlds.push(world)
    const { secretsKey } = getDataPaths(world.directory)
    const { lockDirectory } = await import('../../src/storage/sqlite/directory-lock.ts')
    const unlock = lockDirectory(world.directory)
    const before = readFileSync(secretsKey)

    await expect(rotate(world.directory)).rejects.toThrow()

    expect(readFileSync(secretsKey).equals(before)).toBe(true)
    unlock()
    await world.stop()
  })
})
