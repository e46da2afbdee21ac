// API sessions in memory: what a change revokes stays out of sight until its row is deleted, at no cost per session.
import { beforeEach, expect, it } from 'vitest'
import { type LiveApiSession, LiveApiSessions } from '../../src/authentication/api-sessions/live-api-sessions.ts'

let live: LiveApiSessions

beforeEach(() => {
  live = new LiveApiSessions()
})

const toIdentity = (id: string, authPolicyId: string) => ({
  id,
  name: id,
  isAdmin: false,
  permissions: [],
  authPolicyId,
  roleAttributes: [],
  externalId: null,
})

/** Adds a session that began by a password. */
function add(id: string, identityId: string, authPolicyId = 'some', isRevoked = false): LiveApiSession {
  const basis = { method: 'password', signerId: null, signerKey: null, caId: null, isByClaim: false } as const
  const times = {
    createdAt: 0,
    authenticatedAt: 0,
    lastActivityAt: 0,
    mfaPassedAt: null,
    wokenAt: null,
    unlockedAt: null,
    endsAt: null,
  }
  const state = { clientId: null, owesTotp: false, isTotpComplete: false, configTypes: [] }
  const identity = toIdentity(identityId, authPolicyId)
  return live.add({ id, tokenHash: `hash of ${id}`, identity, basis, ...times, ...state }, isRevoked)
}

const forbidPasswords = (authPolicyId = 'some') => live.revoke({ authPolicyId, method: 'password' })
const listIds = () => Array.from(live.all(), ({ id }) => id)

it('a revoked session is found neither by its token, nor by its id, nor with its identity', () => {
  add('a', 'one')
  add('b', 'other', 'another')
  forbidPasswords()

  expect([live.findByTokenHash('hash of a'), live.get('a')]).toEqual([undefined, undefined])
  expect([live.listOfIdentity('one'), listIds(), live.size]).toEqual([[], ['b'], 1])
  expect([live.isRevoked('a'), live.isRevoked('b'), live.listRevoked(10)]).toEqual([true, false, ['a']])
})

it('a session that begins after a revocation is live, although it rests on the same', () => {
  add('a', 'one')
  forbidPasswords()
  add('b', 'one')

  expect([listIds(), live.listRevoked(10)]).toEqual([['b'], ['a']])
  expect(live.listOfIdentity('one').map(({ id }) => id)).toEqual(['b'])
  forbidPasswords()
  expect([listIds(), live.listRevoked(10)]).toEqual([[], ['a', 'b']])
})

it('a session is revoked by the auth policy that its identity has, and stays revoked if its identity moves', () => {
  add('a', 'one')
  add('b', 'other')
  live.update(toIdentity('one', 'another'))
  forbidPasswords()
  expect(listIds()).toEqual(['a'])

  live.update(toIdentity('other', 'another'))
  expect(listIds()).toEqual(['a'])
  forbidPasswords('another')
  expect([listIds(), live.size]).toEqual([[], 0])
})

it('those that a change will revoke are listed by the policies that their identities have by then', () => {
  for (const id of ['a', 'b', 'c']) add(id, `identity of ${id}`)
  add('d', 'identity of d', 'another')
  const moved = new Map([
    ['identity of a', 'another'],
    ['identity of d', 'some'],
  ])
  const of = { authPolicyId: 'some', method: 'password' } as const

  expect(live.listAmong(of, moved, 10).sort()).toEqual(['b', 'c', 'd'])
  expect(live.listAmong(of, moved, 2)).toHaveLength(2)
})

it('a session whose row is deleted leaves nothing behind, revoked or not', () => {
  add('a', 'one')
  add('b', 'one', 'some', true)
  expect([live.remove('a')?.id, live.remove('b')?.id, live.remove('c')?.id]).toEqual(['a', 'b', undefined])

  expect([listIds(), live.listRevoked(10), live.size, live.listOfIdentity('one')]).toEqual([[], [], 0, []])
})
