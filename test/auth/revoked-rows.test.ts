// Lists of API sessions leave out those that were revoked, by whatever change, as long as their rows exist.
import { beforeAll, expect, it } from 'vitest'
import type { ApiSessionIdentity } from '../../src/authentication/api-sessions/live-api-sessions.ts'
import { excludeRevoked } from '../../src/authentication/api-sessions/revoked-rows.ts'
import type { RevokedSessions } from '../../src/authentication/api-sessions/session-basis.ts'
import { type Method, toSignerAuthenticatorId } from '../../src/authentication/sign-in/authentication-methods.ts'
import { apiSessions } from '../../src/definitions/resources/api-sessions.ts'
import { identities } from '../../src/definitions/resources/identities.ts'
import { get } from '../../src/storage/entities/entities.ts'
import { planList } from '../../src/storage/lists/list-plan.ts'
import { list } from '../../src/storage/lists/lists.ts'
import { registerAuthority } from '../world/authorities.ts'
import { People } from '../world/people.ts'
import { useController } from '../world/use-controller.ts'

const [FIRST, SECOND] = ['signer-1', 'signer-2'] as const

const world = useController()
/** The name of each session, by the key of its row. */
const names = new Map<number, string>()
const ids = { policy: '', authority: '' }

beforeAll(async () => {
  const people = await People.in(world)
  ids.policy = await people.policy({})
  ids.authority = (await registerAuthority(people, { isVerified: false })).id
  const one = await people.identity({ authPolicyId: ids.policy })
  const other = await people.identity()
  const ca = { caId: ids.authority }
  const [first, second] = [FIRST, SECOND].map((id) => ({ authenticatorId: toSignerAuthenticatorId(id) }))
  await begin('password', one, 'password', {})
  await begin('password of the other policy', other, 'password', {})
  await begin('certificate', one, 'cert', {})
  await begin('certificate of the authority', one, 'cert', ca)
  await begin('certificate of the authority, by claim', one, 'cert', { ...ca, externalId: 'claim' })
  await begin('token of the first signer, key a', one, 'ext-jwt', { ...first, signerKey: 'a' })
  await begin('token of the first signer, key b', one, 'ext-jwt', { ...first, signerKey: 'b' })
  await begin('token of the second signer', one, 'ext-jwt', { ...second, signerKey: 'c' })
})

async function begin(name: string, identityId: string, method: Method, basis: object): Promise<void> {
  await world.system.write(async (tx) => {
    const identity = (await get(tx, identities, identityId)) as unknown as ApiSessionIdentity
    const session = { identity, authenticatorId: 'a', ipAddress: '', configTypes: [], ...basis }
    const { id } = await world.controller.auth.apiSessions.insert(tx, session, { method })
    const row = tx.db.selectFrom('api_sessions').select('n').where('id', '=', id)
    names.set((await row.executeTakeFirstOrThrow()).n, name)
  })
}

/** The names of the sessions that lists leave out after these revocations. */
async function listHidden(
  revocations: readonly RevokedSessions[],
  newest = Number.MAX_SAFE_INTEGER,
): Promise<string[]> {
  const { store } = world.controller
  const rows = revocations.map((of, number) => ({ id: `revocation ${number}`, sessions: JSON.stringify(of), newest }))
  await world.system.write(async (tx) => {
    await tx.db.deleteFrom('api_session_revocations').execute()
    if (rows.length > 0) await tx.db.insertInto('api_session_revocations').values(rows).execute()
  })
  const restrictions = await excludeRevoked(store.db)
  const { keys, total } = await list(store, world.system, {
    resource: apiSessions,
    plan: planList({}, 100),
    restrictions,
  })
  expect(total).toBe(keys.length)
  const hidden = new Map(names)
  for (const key of keys) hidden.delete(key)
  return [...hidden.values()]
}

it('a list is not restricted without a revocation', async () => {
  expect(await listHidden([])).toEqual([])
  expect(await excludeRevoked(world.controller.store.db)).toEqual([])
})

it.each<[string, () => RevokedSessions, string[]]>([
  ['a policy forbids passwords', () => ({ authPolicyId: ids.policy, method: 'password' }), ['password']],
  [
    'a policy does not list a signer any more',
    () => ({ authPolicyId: ids.policy, method: 'ext-jwt', exceptSigners: [SECOND] }),
    ['token of the first signer, key a', 'token of the first signer, key b'],
  ],
  ['a policy without identities forbids it', () => ({ authPolicyId: 'none', method: 'password' }), []],
  [
    'an authority is closed',
    () => ({ caId: ids.authority }),
    ['certificate of the authority', 'certificate of the authority, by claim'],
  ],
  [
    'the claim of an authority changes',
    () => ({ caId: ids.authority, isByClaim: true }),
    ['certificate of the authority, by claim'],
  ],
  [
    'a signer is disabled',
    () => ({ signerId: FIRST }),
    ['token of the first signer, key a', 'token of the first signer, key b'],
  ],
  ['a signer loses a key', () => ({ signerId: FIRST, exceptKeys: ['b'] }), ['token of the first signer, key a']],
])('sessions are hidden if %s, and no others', async (_what, toRevocation, expected) => {
  expect(await listHidden([toRevocation()])).toEqual(expected)
})

it('sessions of several revocations are hidden together', async () => {
  const revocations: RevokedSessions[] = [{ signerId: SECOND }, { authPolicyId: ids.policy, method: 'password' }]
  expect(await listHidden(revocations)).toEqual(['password', 'token of the second signer'])
})

it('sessions that began after a revocation are shown', async () => {
  const [first = 0] = names.keys()
  expect(await listHidden([{ authPolicyId: ids.policy, method: 'password' }], first - 1)).toEqual([])
})
