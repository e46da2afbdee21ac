// The impact of a wide change is computed in turns, so that other requests are served meanwhile.

import { afterEach, beforeAll, expect, it, vi } from 'vitest'
import { computeImpact } from '../../src/access/impact/compute-impact.ts'
import { newId } from '../../src/foundation/ids.ts'
import { toRecordChange } from '../../src/storage/transactions/changes.ts'
import { useController } from '../world/use-controller.ts'
import { smallNetwork } from './network.ts'

const IDENTITIES = 30

const world = useController()

beforeAll(async () => {
  const network = await smallNetwork(world)
  for (let at = 0; at < IDENTITIES; at++) await network.person(`person ${at}`, ['staff'])
  await network.service('web', ['inner'])
})
afterEach(() => {
  vi.restoreAllMocks()
})

it('an impact lets other requests run after a comparison that takes long, and finds every right nevertheless', async () => {
  const context = world.controller.contexts.create({ kind: 'system' })
  const after = {
    ...{ id: newId(), name: 'new', type: 'Dial', semantic: 'AnyOf' },
    ...{ identityRoles: ['#staff'], serviceRoles: ['#inner'], postureCheckRoles: [] },
  }
  // Each identity takes longer than a turn may.
  const { access } = world.controller
  const findPolicies = access.findPolicies.bind(access)
  vi.spyOn(access, 'findPolicies').mockImplementation((...question) => {
    world.clock.advance(20)
    return findPolicies(...question)
  })
  let turns = 0
  let isComputing = true
  const countTurn = () => {
    turns++
    if (isComputing) setImmediate(countTurn)
  }
  setImmediate(countTurn)

  const { gains } = await computeImpact(world.controller, context, [
    toRecordChange('service-policies', after.id, undefined, after),
  ])
  isComputing = false

  expect(gains).toMatchObject({ identities: IDENTITIES, services: 1, pairs: IDENTITIES })
  expect(turns).toBeGreaterThan(IDENTITIES / 2)
})

it('an impact has what each identity gains, also if several have the same policies and posture blocks some of these', async () => {
  const network = await smallNetwork(world)
  await network.make('posture-checks', { name: 'agent', typeId: 'MFA', roleAttributes: ['guard'] })
  for (const name of ['mail', 'files', 'wiki']) await network.service(name, [name])
  for (const [name, role] of [
    ['ann', 'one'],
    ['bob', 'one'],
    ['cid', 'two'],
    ['dan', 'guarded'],
    ['eve', 'guarded'],
  ] as const)
    await network.person(name, [role])
  // As many policies with the same first and last one, so that only the middle one tells them apart.
  const policy = (identityRoles: string[], service: string, postureCheckRoles: string[] = []) => {
    const id = newId()
    const after = { id, name: id, type: 'Dial', semantic: 'AnyOf', identityRoles, serviceRoles: [`#${service}`] }
    return toRecordChange('service-policies', id, undefined, { ...after, postureCheckRoles })
  }
  const all = ['#one', '#two', '#guarded']
  const changes = [
    policy(all, 'mail'),
    policy(['#one'], 'files'),
    policy(['#two'], 'wiki'),
    policy(['#guarded'], 'files', ['#guard']),
    policy(all, 'mail'),
  ]
  const context = world.controller.contexts.create({ kind: 'system' })

  const { gains, blockedGains } = await computeImpact(world.controller, context, changes, 100)

  const services = (await network.get('/services?limit=500')) as { id: string; name: string }[]
  const names = new Map(services.map(({ id, name }) => [id, name]))
  const toTexts = ({ examples }: Pick<typeof gains, 'examples'>) =>
    examples.map(({ identity, serviceId }) => `${identity.name} ${names.get(serviceId)}`).sort()
  expect(toTexts(gains)).toEqual([
    ...['ann files', 'ann mail', 'bob files', 'bob mail', 'cid mail', 'cid wiki'],
    ...['dan mail', 'eve mail'],
  ])
  expect(toTexts(blockedGains)).toEqual(['dan files', 'eve files'])
})
