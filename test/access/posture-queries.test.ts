// The posture queries that clients receive with a service: without a report nothing passes.
import { beforeAll, describe, expect, it } from 'vitest'
import { useController } from '../world/use-controller.ts'
import { type Person, type SmallNetwork, smallNetwork } from './network.ts'

const world = useController()
let network: SmallNetwork
let sequence = 0

beforeAll(async () => {
  network = await smallNetwork(world)
})

/** A service that a new person may dial by policies with these checks, one policy each. */
async function guarded(...checks: readonly (readonly string[])[]) {
  const tag = `posture-${++sequence}`
  const service = await network.service(tag, [tag])
  const who = await network.person(tag, [tag])
  const policies: string[] = []
  for (const roles of checks) {
    policies.push(await network.servicePolicy('Dial', [`#${tag}`], [`#${tag}`], { postureCheckRoles: roles }))
  }
  return { who, service, policies }
}

/** The sets that a client sees, in its list and in the record alike. */
async function readQuerySets(who: Person, service: string): Promise<Record<string, unknown>[]> {
  const one = (await network.ask(who, 'GET', `/services/${service}`)).body.data
  const list = (await network.ask(who, 'GET', '/services')).body.data
  expect(list).toEqual([one])
  return one.postureQueries
}

const domain = () =>
  network.make('posture-checks', { name: `domain ${++sequence}`, typeId: 'DOMAIN', domains: ['a.b'] })

describe('the posture queries of a service', () => {
  it('are none, and pass, where no policy of the identity has a check', async () => {
    const { who, service } = await guarded([])

    expect(await readQuerySets(who, service)).toMatchObject([
      { policyType: 'Dial', isPassing: true, postureQueries: [] },
    ])
  })

  it('are none, and pass, where roles match no check', async () => {
    const { who, service } = await guarded(['#no-such-check'])

    expect(await readQuerySets(who, service)).toMatchObject([
      { policyType: 'Dial', isPassing: true, postureQueries: [] },
    ])
  })

  it('do not pass as long as the machine has reported nothing', async () => {
    const check = await domain()
    const { who, service, policies } = await guarded([`@${check}`])

    const { id, createdAt, updatedAt, tags } = await network.get(`/posture-checks/${check}`)
    expect(await readQuerySets(who, service)).toEqual([
      {
        policyId: policies[0],
        policyType: 'Dial',
        isPassing: false,
        postureQueries: [
          {
            _links: { self: { href: `./posture-checks/${check}` } },
            id,
            createdAt,
            updatedAt,
            tags,
            queryType: 'DOMAIN',
            isPassing: false,
            timeout: -1,
            timeoutRemaining: -1,
            processes: [],
          },
        ],
      },
    ])
  })

  it('of a policy without checks are none, and pass, although those of another policy do not', async () => {
    const check = await domain()
    const { who, service, policies } = await guarded([`@${check}`], [])

    const sets = await readQuerySets(who, service)

    const byPolicy = new Map(sets.map((set) => [set.policyId, set]))
    expect(byPolicy.get(policies[0])).toMatchObject({ isPassing: false, postureQueries: [{ id: check }] })
    expect(byPolicy.get(policies[1])).toMatchObject({ isPassing: true, postureQueries: [] })
    expect(sets).toHaveLength(2)
  })

  it('pass one by one, and a policy only when all of its own do', async () => {
    const one = await domain()
    const body = { name: `addresses ${++sequence}`, typeId: 'MAC', macAddresses: ['00:11:22:33:44:55'] }
    const other = await network.make('posture-checks', body)
    const { who, service } = await guarded([`@${one}`, `@${other}`])
    await network.report(who, { typeId: 'DOMAIN', domain: 'a.b' })

    const half = await readQuerySets(who, service)
    await network.report(who, { typeId: 'MAC', macAddresses: ['001122334455'] })
    const whole = await readQuerySets(who, service)

    const readView = (set: Record<string, unknown> = {}) =>
      Object.fromEntries((set.postureQueries as { id: string; isPassing: boolean }[]).map((q) => [q.id, q.isPassing]))
    expect([half[0]?.isPassing, readView(half[0])]).toEqual([false, { [one]: true, [other]: false }])
    expect([whole[0]?.isPassing, readView(whole[0])]).toEqual([true, { [one]: true, [other]: true }])
  })

  it('say which programs are looked for, and how long a proof stays good', async () => {
    const name = () => `looked for ${++sequence}`
    const program = { osType: 'Linux', path: '/bin/a', hashes: ['ab'] }
    const one = await network.make('posture-checks', { name: name(), typeId: 'PROCESS', process: program })
    const body = { name: name(), typeId: 'PROCESS_MULTI', semantic: 'AnyOf', processes: [program] }
    const several = await network.make('posture-checks', body)
    const mfa = await network.make('posture-checks', { name: name(), typeId: 'MFA', timeoutSeconds: 60 })
    const { who, service } = await guarded([`@${one}`, `@${several}`, `@${mfa}`])

    const [set] = await readQuerySets(who, service)

    const process = { osType: 'Linux', path: '/bin/a' }
    const queries = set?.postureQueries as Record<string, unknown>[]
    const byId = new Map(queries.map((query) => [query.id, query]))
    expect(byId.get(one)).toMatchObject({ queryType: 'PROCESS', process, processes: [] })
    expect(byId.get(several)).toMatchObject({ queryType: 'PROCESS_MULTI', processes: [process] })
    expect(byId.get(several)).not.toHaveProperty('process')
    expect(byId.get(mfa)).toMatchObject({ queryType: 'MFA', timeout: 60, timeoutRemaining: 0 })
  })

  it('name the prompts that a check of MFA demands, and no end of a proof that was not given', async () => {
    const create = (name: string, rules: object) =>
      network.make('posture-checks', { name: `${name} ${++sequence}`, typeId: 'MFA', ...rules })
    const lasting = await create('lasting', {})
    const waking = await create('waking', { timeoutSeconds: 60, promptOnWake: true })
    const unlocking = await create('unlocking', { timeoutSeconds: 60, promptOnUnlock: true })
    const { who, service } = await guarded([`@${lasting}`, `@${waking}`, `@${unlocking}`])

    const [set] = await readQuerySets(who, service)

    const queries = set?.postureQueries as Record<string, unknown>[]
    const members = ({ id, promptOnWake, promptOnUnlock, timeoutAt }: Record<string, unknown>) => [
      id,
      { promptOnWake, promptOnUnlock, timeoutAt },
    ]
    expect(Object.fromEntries(queries.map(members))).toEqual({
      [lasting]: {},
      [waking]: { promptOnWake: true },
      [unlocking]: { promptOnUnlock: true },
    })
  })

  it('are shown to administrators as another identity has them', async () => {
    const check = await domain()
    const { who, service, policies } = await guarded([`@${check}`])

    const { postureQueries, permissions } = await network.get(`/services/${service}?asIdentity=${who.id}`)

    expect(permissions).toEqual(['Dial'])
    expect(postureQueries).toMatchObject([{ policyId: policies[0], isPassing: false }])
  })
})
