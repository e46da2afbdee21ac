// "Why can X not reach Y": each link that records alone can break is named, and the command that is proposed repairs it.
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { toCommandWords } from '../../commands/administration/remedies.ts'
import { describeApi } from '../../server/operations/api-description.ts'
import { advise } from '../../src/access/advice/advise.ts'
import type { Advice, AdviceLink } from '../../src/access/advice/chain.ts'
import { disconnectedNetwork } from '../../src/access/live-network.ts'
import type { LiveSources } from '../../src/access/live-state.ts'
import { cleanEnvironment } from '../world/binary.ts'
import { commandLine } from '../world/command-line.ts'
import { testController } from '../world/controller.ts'
import { Issuer } from '../world/issuers.ts'
import { writeProfiles } from '../world/profiles.ts'
import { wordsOf } from '../world/shell.ts'
import { useController } from '../world/use-controller.ts'
import { type SmallNetwork, smallNetwork } from './network.ts'

let network: SmallNetwork
let count = 0
const env = cleanEnvironment()

/** The live state that the tests set; all other state is unknown. */
const liveFacts = {
  routers: new Map<string, 'online' | 'offline'>(),
  disconnectTimes: new Map<string, number>(),
  terminators: new Map<string, 'passing' | 'failing'>(),
}
const live: LiveSources = {
  network: {
    ...disconnectedNetwork,
    getPresence: (id) => liveFacts.routers.get(id) ?? 'unknown',
    getDisconnectTime: (id) => liveFacts.disconnectTimes.get(id),
  },
  terminators: { healthOf: (id) => liveFacts.terminators.get(id) ?? 'unknown' },
}
const world = useController({ live })

beforeAll(async () => {
  network = await smallNetwork(world)
  const { url, rootPem } = await world.listen()
  writeProfiles(env, { test: { url, rootPem, token: await world.admin() } })
})

/** A pair that everything links, under names of its own: tests break one link each. */
interface Linked {
  readonly identity: string
  readonly service: string
  readonly router: string
  readonly servicePolicy: string
  readonly edgeRouterPolicy: string
  readonly serviceEdgeRouterPolicy: string
  readonly terminator: string
  readonly tag: string
}
let pair: Linked

async function linked(): Promise<Linked> {
  const tag = `n${++count}`
  const identity = await network.make('identities', {
    name: `laptop-${tag}`,
    type: 'Default',
    isAdmin: false,
    roleAttributes: [`staff-${tag}`, 'abroad'],
    enrollment: { ott: true },
  })
  const service = await network.service(`web-${tag}`, [`web-${tag}`, 'internal'])
  const router = await network.router(`router-${tag}`, [`north-${tag}`])
  await enroll(router)
  liveFacts.routers.set(router, 'online')
  const servicePolicy = await network.servicePolicy('Dial', [`#staff-${tag}`], [`#web-${tag}`])
  const edgeRouterPolicy = await network.edgeRouterPolicy([`#staff-${tag}`], [`#north-${tag}`])
  const serviceEdgeRouterPolicy = await network.serviceEdgeRouterPolicy([`#web-${tag}`], [`#north-${tag}`])
  const terminator = await network.make('terminators', {
    service,
    router,
    binding: 'transport',
    address: 'tcp:localhost:8080',
  })
  liveFacts.terminators.set(terminator, 'passing')
  return { identity, service, router, servicePolicy, edgeRouterPolicy, serviceEdgeRouterPolicy, terminator, tag }
}

/** As if the router had enrolled. */
async function enroll(router: string): Promise<void> {
  await world.system.write(async (tx) => {
    await tx.db.updateTable('routers').set({ isVerified: 1 }).where('id', '=', router).execute()
  })
}

beforeEach(async () => {
  pair = await linked()
})

const adviceOn = ({ identity, service }: Linked, type: 'Dial' | 'Bind' = 'Dial'): Promise<Advice> =>
  advise(world.controller, world.system, identity, service, type)

const outcomes = ({ links }: Advice) => links.map(({ link, outcome }) => `${link} ${outcome}`)
const failed = ({ links }: Advice) => links.flatMap(({ link, outcome }) => (outcome === 'failed' ? [link] : []))
const linkOf = ({ links }: Advice, name: string) => links.find(({ link }) => link === name) as AdviceLink

/** Runs the command of the remedy as an administrator would type it. */
async function repair({ remedy }: AdviceLink): Promise<void> {
  expect(remedy).toBeDefined()
  // A token that the test does not need goes to stdout.
  const words = remedy ? toCommandWords(remedy, describeApi()).map((word) => (/\.jwt$/.test(word) ? '-' : word)) : []
  const finished = await commandLine(words, env)
  expect(finished.code, finished.stderr).toBe(0)
}

describe('a pair that everything links', () => {
  it('is allowed, and every link says by what', async () => {
    const advice = await adviceOn(pair)

    expect(advice.verdict).toBe('allowed')
    expect(outcomes(advice)).toEqual([
      'identity passed',
      'auth-policy passed',
      'service-policy passed',
      'posture passed',
      'edge-router-policy passed',
      'service-edge-router-policy passed',
      'common-router passed',
      'terminator passed',
    ])
    expect(linkOf(advice, 'service-policy').policies).toEqual([
      {
        id: pair.servicePolicy,
        name: expect.any(String),
        subjectRoles: [`#staff-${pair.tag}`],
        objectRoles: [`#web-${pair.tag}`],
      },
    ])
    expect(linkOf(advice, 'edge-router-policy').policies).toMatchObject([{ edgeRouters: [`router-${pair.tag}`] }])
  })

  it('is not looked at for terminators where it hosts', async () => {
    await network.change('PATCH', `/service-policies/${pair.servicePolicy}`, { type: 'Bind' })

    const advice = await adviceOn(pair, 'Bind')

    expect(advice.verdict).toBe('allowed')
    expect(advice.links.map(({ link }) => link)).not.toContain('terminator')
  })
})

interface Break {
  readonly what: string
  readonly link: string
  /** Further links that cannot hold without it. */
  readonly along?: readonly string[]
  readonly message: RegExp
  readonly break: (pair: Linked) => Promise<unknown>
  readonly miss?: (pair: Linked) => object
}

const patch = (path: string, body: object) => network.change('PATCH', path, body)

/** Puts the identity under an auth policy that requires tokens of a new signer. */
async function requireSigner(identity: string, tag: string, changes: object): Promise<void> {
  const signer = await network.make('external-jwt-signers', new Issuer().signerBody({ ...changes }))
  const { data } = (await network.call('GET', '/auth-policies/default')).body
  const secondary = { ...data.secondary, requireExtJwtSigner: signer }
  const id = await network.make('auth-policies', { name: `tokens ${tag}`, primary: data.primary, secondary })
  await patch(`/identities/${identity}`, { authPolicyId: id })
}

const mendable: readonly Break[] = [
  {
    what: 'the identity is disabled',
    link: 'identity',
    message: /is disabled$/,
    break: ({ identity }) => network.change('POST', `/identities/${identity}/disable`, { durationMinutes: 0 }),
  },
  {
    what: 'the identity is locked out for a time',
    link: 'identity',
    message: /is disabled until \d{4}-/,
    break: ({ identity }) => network.change('POST', `/identities/${identity}/disable`, { durationMinutes: 10 }),
  },
  {
    what: 'its auth policy is closed to certificates',
    link: 'auth-policy',
    message: /admits no certificates/,
    break: async ({ identity, tag }) => {
      const { data } = (await network.call('GET', '/auth-policies/default')).body
      const primary = { ...data.primary, cert: { ...data.primary.cert, allowed: false } }
      const id = await network.make('auth-policies', { name: `closed ${tag}`, primary, secondary: data.secondary })
      await patch(`/identities/${identity}`, { authPolicyId: id })
    },
  },
  {
    what: 'its auth policy requires tokens of a signer that is disabled',
    link: 'auth-policy',
    message: /requires tokens of signer \d+ with every request, and signer \d+ is disabled$/,
    break: ({ identity, tag }) => requireSigner(identity, tag, { enabled: false }),
  },
  {
    what: 'its auth policy requires tokens that name an external id, and it has none',
    link: 'auth-policy',
    message: /which name an external id, and laptop-n\d+ has none$/,
    break: ({ identity, tag }) => requireSigner(identity, tag, {}),
  },
  {
    what: 'its enrollment has expired',
    link: 'auth-policy',
    message: /enrollment expired/,
    break: async ({ identity }) => {
      const expiresAt = world.clock.now() - 1000
      await world.system.write(async (tx) => {
        await tx.db.updateTable('enrollments').set({ expiresAt }).where('identityId', '=', identity).execute()
      })
    },
  },
  {
    what: 'it has nothing to sign in with',
    link: 'auth-policy',
    message: /nothing to sign in with/,
    break: async ({ identity }) => {
      const [enrollment] = await network.get(`/identities/${identity}/enrollments`)
      await network.change('DELETE', `/enrollments/${enrollment.id}`)
    },
  },
  {
    what: 'the identity lacks an attribute',
    link: 'service-policy',
    message: /^no Dial policy links/,
    break: ({ servicePolicy, tag }) =>
      patch(`/service-policies/${servicePolicy}`, {
        semantic: 'AllOf',
        identityRoles: [`#staff-${tag}`, '#missing'],
        serviceRoles: [`#web-${tag}`],
      }),
    miss: ({ tag }) => ({ lacking: [{ record: `laptop-${tag}`, attributes: ['missing'] }] }),
  },
  {
    what: 'the service lacks two attributes',
    link: 'service-policy',
    message: /^no Dial policy links/,
    break: ({ servicePolicy, tag }) =>
      patch(`/service-policies/${servicePolicy}`, {
        semantic: 'AllOf',
        serviceRoles: [`#web-${tag}`, `#x-${tag}`, `#y-${tag}`],
      }),
    miss: ({ tag }) => ({ lacking: [{ record: `web-${tag}`, attributes: [`x-${tag}`, `y-${tag}`] }] }),
  },
  {
    what: 'the policy names other identities only',
    link: 'service-policy',
    message: /^no Dial policy links/,
    break: async ({ servicePolicy, tag }) => {
      const { id } = await network.person(`other ${tag}`)
      await patch(`/service-policies/${servicePolicy}`, { identityRoles: [`@${id}`] })
    },
    miss: ({ tag }) => ({ lacking: [{ record: `laptop-${tag}`, attributes: null }] }),
  },
  {
    what: 'the policy is gone',
    link: 'service-policy',
    message: /^no Dial policy links/,
    break: ({ servicePolicy }) => network.change('DELETE', `/service-policies/${servicePolicy}`),
  },
  {
    what: 'the policy lets it host only',
    link: 'service-policy',
    message: /^no Dial policy links/,
    break: ({ servicePolicy }) => patch(`/service-policies/${servicePolicy}`, { type: 'Bind' }),
  },
  {
    what: 'no edge router policy matches the identity',
    link: 'edge-router-policy',
    along: ['common-router'],
    message: /^no policy leads from laptop-/,
    break: ({ edgeRouterPolicy, tag }) =>
      patch(`/edge-router-policies/${edgeRouterPolicy}`, { identityRoles: [`#unused-${tag}`] }),
    miss: ({ tag }) => ({ lacking: [{ record: `laptop-${tag}`, attributes: [`unused-${tag}`] }] }),
  },
  {
    what: 'its edge router policy leads to no router',
    link: 'edge-router-policy',
    along: ['common-router'],
    message: /^no policy leads from laptop-/,
    break: ({ edgeRouterPolicy, tag }) =>
      patch(`/edge-router-policies/${edgeRouterPolicy}`, { edgeRouterRoles: [`#none-${tag}`] }),
    miss: ({ tag }) => ({ lacking: [{ record: `router-${tag}`, attributes: [`none-${tag}`] }] }),
  },
  {
    what: 'its edge router policy is gone',
    link: 'edge-router-policy',
    along: ['common-router'],
    message: /^no policy leads from laptop-/,
    break: ({ edgeRouterPolicy }) => network.change('DELETE', `/edge-router-policies/${edgeRouterPolicy}`),
  },
  {
    what: 'no service edge router policy matches the service',
    link: 'service-edge-router-policy',
    along: ['common-router'],
    message: /^no policy leads from web-/,
    break: ({ serviceEdgeRouterPolicy, tag }) =>
      patch(`/service-edge-router-policies/${serviceEdgeRouterPolicy}`, { serviceRoles: [`#nothing-${tag}`] }),
    miss: ({ tag }) => ({ lacking: [{ record: `web-${tag}`, attributes: [`nothing-${tag}`] }] }),
  },
  {
    what: 'the service edge router policy is gone',
    link: 'service-edge-router-policy',
    along: ['common-router'],
    message: /^no policy leads from web-/,
    break: ({ serviceEdgeRouterPolicy }) =>
      network.change('DELETE', `/service-edge-router-policies/${serviceEdgeRouterPolicy}`),
  },
  {
    what: 'both have routers, but none in common',
    link: 'common-router',
    message: /^no edge router is open to both/,
    break: async ({ serviceEdgeRouterPolicy, tag }) => {
      const other = await network.router(`other-${tag}`, [`south-${tag}`])
      await enroll(other)
      liveFacts.routers.set(other, 'online')
      await patch(`/service-edge-router-policies/${serviceEdgeRouterPolicy}`, { edgeRouterRoles: [`#south-${tag}`] })
    },
  },
  {
    what: 'the common router is disabled',
    link: 'common-router',
    message: /router-n\d+ \(disabled\)$/,
    break: ({ router }) => patch(`/edge-routers/${router}`, { disabled: true }),
  },
  {
    what: 'the terminator is marked as failed',
    link: 'terminator',
    message: /^no terminator of web-n\d+ can be used: at tcp:localhost:8080 over router-n\d+ \(marked as failed\)$/,
    break: ({ terminator }) => patch(`/terminators/${terminator}`, { precedence: 'failed' }),
  },
]

describe('a link that one command repairs', () => {
  it.each(mendable.map((one) => [one.what, one]))(
    '%s: it is named, and the command repairs it',
    async (_what, broken) => {
      await broken.break(pair)

      const advice = await adviceOn(pair)

      expect(advice.verdict).toBe('denied')
      expect(failed(advice)).toEqual([broken.link, ...(broken.along ?? [])])
      const link = linkOf(advice, broken.link)
      expect(link.message).toMatch(broken.message)
      if (broken.miss) expect(link.nearestMiss).toMatchObject(broken.miss(pair))

      await repair(link)

      expect(failed(await adviceOn(pair))).toEqual([])
    },
  )
})

const unmendable: readonly Break[] = [
  {
    what: 'its auth policy asks for one-time passwords',
    link: 'auth-policy',
    message: /one-time passwords/,
    break: async ({ identity, tag }) => {
      const { data } = (await network.call('GET', '/auth-policies/default')).body
      const secondary = { ...data.secondary, requireTotp: true }
      const id = await network.make('auth-policies', { name: `strict ${tag}`, primary: data.primary, secondary })
      await patch(`/identities/${identity}`, { authPolicyId: id })
    },
  },
  {
    what: 'the machine fails a posture check',
    link: 'posture',
    message:
      /does not show what .* asks of it for web-n\d+: domain n\d+ \(the machine reported c\.d; accepted: a\.b\)$/,
    break: async ({ identity, servicePolicy, tag }) => {
      const id = await network.make('posture-checks', { name: `domain ${tag}`, typeId: 'DOMAIN', domains: ['a.b'] })
      await network.report(await world.signInAgain(identity), { typeId: 'DOMAIN', domain: 'c.d' })
      await patch(`/service-policies/${servicePolicy}`, { postureCheckRoles: [`@${id}`] })
    },
  },
  {
    what: 'the common router has not enrolled',
    link: 'common-router',
    message: /\(not enrolled\)$/,
    break: ({ router }) => network.change('POST', `/edge-routers/${router}/re-enroll`),
  },
  {
    what: 'the common router is offline, and with it the terminator behind it',
    link: 'common-router',
    along: ['terminator'],
    message: /^none of the common edge routers is online: router-n\d+ \(offline since the controller started\)$/,
    break: async ({ router }) => liveFacts.routers.set(router, 'offline'),
  },
  {
    what: 'the service has no host',
    link: 'terminator',
    message: /^web-n\d+ has no terminator, and no identity may host it$/,
    break: ({ terminator }) => network.change('DELETE', `/terminators/${terminator}`),
  },
]

describe('an auth policy that does not admit the identity', () => {
  it('is not loosened for others: the command gives this identity another one', async () => {
    await requireSigner(pair.identity, pair.tag, { enabled: false })

    const { remedy } = linkOf(await adviceOn(pair), 'auth-policy')

    expect(remedy).toEqual({
      operation: 'update',
      resource: 'identities',
      record: { id: pair.identity, name: `laptop-${pair.tag}` },
      values: { authPolicyId: 'default' },
      references: [{ id: 'default', name: 'Default' }],
    })
  })

  it('is copied first, if no other one admits the identity', async () => {
    const { identity, tag } = pair
    const { primary, secondary } = (await network.call('GET', '/auth-policies/default')).body.data
    const closed = { ...primary, cert: { ...primary.cert, allowed: false } }
    const before = await network.get('/auth-policies?limit=500')
    for (const { id } of before) await patch(`/auth-policies/${id}`, { primary: closed })

    const link = linkOf(await adviceOn(pair), 'auth-policy')

    expect(link.remedy).toBeUndefined()
    expect(link.next).toEqual([
      { operation: 'create', resource: 'auth-policies', values: { name: `Default-laptop-${tag}`, primary, secondary } },
    ])
    await network.make('auth-policies', link.next?.[0]?.values as never)
    await repair(linkOf(await adviceOn(pair), 'auth-policy'))
    expect(failed(await adviceOn(pair))).toEqual([])
    await patch('/auth-policies/default', { primary })
    await patch(`/identities/${identity}`, { authPolicyId: 'default' })
  })

  it('is met by a token of a signer that names the external id of the identity', async () => {
    const { identity } = pair
    await network.make('external-jwt-signers', new Issuer().signerBody({ name: `keycloak ${pair.tag}` }))
    const [enrollment] = await network.get(`/identities/${identity}/enrollments`)
    await network.change('DELETE', `/enrollments/${enrollment.id}`)
    const without = linkOf(await adviceOn(pair), 'auth-policy')
    await patch(`/identities/${identity}`, { externalId: `subject ${pair.tag}` })

    const link = linkOf(await adviceOn(pair), 'auth-policy')

    expect(without.outcome).toBe('failed')
    expect(link.outcome).toBe('passed')
    expect(link.message).toContain(`a token of keycloak ${pair.tag}`)
  })
})

describe('a link that no single command repairs', () => {
  it.each(unmendable.map((one) => [one.what, one]))(
    '%s: it is named, and no command is proposed',
    async (_what, broken) => {
      await broken.break(pair)

      const advice = await adviceOn(pair)

      expect(failed(advice)).toEqual([broken.link, ...(broken.along ?? [])])
      expect(linkOf(advice, broken.link).message).toMatch(broken.message)
      expect(linkOf(advice, broken.link).remedy).toBeUndefined()
    },
  )
})

describe('unknown live state', () => {
  it('is unknown of a machine that has reported nothing, and passes for nothing else', async () => {
    const id = await network.make('posture-checks', { name: `mute ${pair.tag}`, typeId: 'DOMAIN', domains: ['a.b'] })
    await patch(`/service-policies/${pair.servicePolicy}`, { postureCheckRoles: [`@${id}`] })

    const advice = await adviceOn(pair)

    expect(advice.verdict).toBe('unknown')
    expect(linkOf(advice, 'posture')).toMatchObject({
      outcome: 'unknown',
      postureChecks: [{ id, evidence: 'unknown', message: 'the machine has not reported its domain', reported: null }],
    })
  })

  it('covers routers, and the hosts behind them, while no control channel watches them', async () => {
    liveFacts.routers.delete(pair.router)

    const advice = await adviceOn(pair)

    expect(advice.verdict).toBe('unknown')
    expect(linkOf(advice, 'common-router').outcome).toBe('unknown')
    expect(linkOf(advice, 'terminator').outcome).toBe('unknown')
  })
})

describe('the nearest miss', () => {
  it('is the policy that lacks the fewest attributes', async () => {
    const { tag } = pair
    await network.change('DELETE', `/service-policies/${pair.servicePolicy}`)
    const allOf = { semantic: 'AllOf' }
    await network.servicePolicy('Dial', [`#staff-${tag}`, '#x', '#y'], [`#web-${tag}`], allOf)
    const near = await network.servicePolicy('Dial', [`#staff-${tag}`, '#z'], [`#web-${tag}`], allOf)

    const link = linkOf(await adviceOn(pair), 'service-policy')

    expect(link.nearestMiss).toMatchObject({ policy: { id: near }, lacking: [{ attributes: ['z'] }] })
    expect(link.remedy).toMatchObject({
      operation: 'update',
      resource: 'identities',
      record: { name: `laptop-${tag}` },
    })
  })

  it('is named, without a remedy, if both sides lack something', async () => {
    const { tag } = pair
    await network.change('DELETE', `/service-policies/${pair.servicePolicy}`)
    const policies = (await network.get('/service-policies?limit=500')) as { id: string }[]
    for (const { id } of policies) await network.change('DELETE', `/service-policies/${id}`)
    await network.servicePolicy('Dial', ['#others'], ['#other-services'])

    const link = linkOf(await adviceOn(pair), 'service-policy')

    expect(link.nearestMiss?.lacking).toEqual([
      { record: `laptop-${tag}`, attributes: ['others'] },
      { record: `web-${tag}`, attributes: ['other-services'] },
    ])
    expect(link.remedy).toEqual({
      operation: 'create',
      resource: 'service-policies',
      values: {
        name: `laptop-${tag}-dials-web-${tag}`,
        type: 'Dial',
        semantic: 'AnyOf',
        identityRoles: [`@${pair.identity}`],
        serviceRoles: [`@${pair.service}`],
      },
      references: [
        { id: pair.identity, name: `laptop-${tag}` },
        { id: pair.service, name: `web-${tag}` },
      ],
      alsoOpens: { otherIdentities: 0, otherServices: 0, isComplete: true },
    })
    expect(link.remedy && toCommandWords(link.remedy, describeApi())).toEqual([
      ...['service-policy', 'create', `laptop-${tag}-dials-web-${tag}`, '--type', 'Dial', '--semantic', 'AnyOf'],
      ...['--identity-roles', `@laptop-${tag}`, '--service-roles', `@web-${tag}`],
    ])
  })
})

describe('remedies', () => {
  it('add to what the record has, so that one does not undo another', async () => {
    const { tag, servicePolicy, edgeRouterPolicy } = pair
    await patch(`/service-policies/${servicePolicy}`, { identityRoles: [`#dialers-${tag}`] })
    await patch(`/edge-router-policies/${edgeRouterPolicy}`, { identityRoles: [`#routed-${tag}`] })

    const advice = await adviceOn(pair)
    await repair(linkOf(advice, 'service-policy'))
    await repair(linkOf(advice, 'edge-router-policy'))

    expect(linkOf(advice, 'service-policy').remedy).toMatchObject({ adds: { roleAttributes: [`dialers-${tag}`] } })
    expect(failed(await adviceOn(pair))).toEqual([])
    const { roleAttributes } = (await network.call('GET', `/identities/${pair.identity}`)).body.data
    expect(roleAttributes.sort()).toEqual(['abroad', `dialers-${tag}`, `routed-${tag}`, `staff-${tag}`])
  })

  it('say what else they open, the one first that opens nothing else', async () => {
    const { tag, servicePolicy } = pair
    await network.service(`mail-${tag}`, [`web-${tag}`])
    await patch(`/service-policies/${servicePolicy}`, { identityRoles: [`#dialers-${tag}`] })

    const { remedy, alternatives } = linkOf(await adviceOn(pair), 'service-policy')

    expect(remedy).toMatchObject({ operation: 'create', alsoOpens: { otherServices: 0, otherIdentities: 0 } })
    expect(alternatives).toMatchObject([
      { adds: { roleAttributes: [`dialers-${tag}`] }, alsoOpens: { otherServices: 1, otherIdentities: 0 } },
    ])
  })

  it('never open a service to other identities if one for this identity does not', async () => {
    const { tag, servicePolicy } = pair
    await network.person(`other ${tag}`, [`staff-${tag}`])
    await patch(`/service-policies/${servicePolicy}`, { serviceRoles: [`#missing-${tag}`] })

    const { nearestMiss, remedy, alternatives } = linkOf(await adviceOn(pair), 'service-policy')

    expect(nearestMiss).toMatchObject({ lacking: [{ record: `web-${tag}`, attributes: [`missing-${tag}`] }] })
    expect(remedy).toMatchObject({ operation: 'create', alsoOpens: { otherIdentities: 0 } })
    expect(alternatives).toBeUndefined()
  })

  it('are not shown twice', async () => {
    const { tag, servicePolicy, edgeRouterPolicy } = pair
    await patch(`/service-policies/${servicePolicy}`, { identityRoles: [`#both-${tag}`] })
    await patch(`/edge-router-policies/${edgeRouterPolicy}`, { identityRoles: [`#both-${tag}`] })

    const { links } = await adviceOn(pair)

    const adding = links.flatMap(({ remedy, alternatives = [] }) =>
      [remedy, ...alternatives].filter((one) => one?.adds?.roleAttributes?.includes(`both-${tag}`)),
    )
    expect(adding).toHaveLength(1)
  })

  it('are drawn with what they open besides the service', async () => {
    const { tag, servicePolicy } = pair
    await network.service(`mail-${tag}`, [`web-${tag}`])
    await patch(`/service-policies/${servicePolicy}`, { identityRoles: [`#dialers-${tag}`] })

    const { stdout } = await commandLine(['policy', 'advise', `laptop-${tag}`, `web-${tag}`], env)

    expect(stdout).toMatch(/remedy: controller service-policy create .*\n +\(opens nothing else\)/)
    expect(stdout).toMatch(
      /or: +controller identity update laptop-n\d+ --add-role dialers-n\d+\n +\(opens also 1 other service to laptop-n\d+\)/,
    )
  })
})

describe('a service that is not hosted', () => {
  it('by those that may host it names them, and the advice on them', async () => {
    const { tag, terminator } = pair
    await network.person(`server ${tag}`, [`servers-${tag}`])
    await network.servicePolicy('Bind', [`#servers-${tag}`], [`#web-${tag}`])
    await network.change('DELETE', `/terminators/${terminator}`)

    const link = linkOf(await adviceOn(pair), 'terminator')
    const { stdout } = await commandLine(['policy', 'advise', `laptop-${tag}`, `web-${tag}`], env)

    expect(link.message).toBe(`web-${tag} has no terminator: server ${tag} may host it, and does not`)
    expect(link.hosts).toMatchObject([{ name: `server ${tag}` }])
    expect(stdout).toContain(`next:   controller policy advise 'server ${tag}' web-${tag} --bind\n`)
  })

  it('is hosted at last if each next command is run: a policy, an identity with its role, its enrollment, its program', async () => {
    const { tag, terminator } = pair
    await network.change('DELETE', `/terminators/${terminator}`)
    const ask = async () => (await commandLine(['policy', 'advise', `laptop-${tag}`, `web-${tag}`], env)).stdout
    const run = async (command: string) => expect((await commandLine(wordsOf(command), env)).code).toBe(0)

    const [, policyCommand = '', hostCommand = ''] =
      /next: +controller (service-policy create .*)\n +controller (identity create .*)\n/.exec(await ask()) ?? []
    expect(policyCommand).toMatch(/--type Bind .*--identity-roles '#web-n\d+-hosts' --service-roles '?@web-n\d+/)
    expect(hostCommand).toBe(`identity create web-${tag}-host --role web-${tag}-hosts --jwt-file web-${tag}-host.jwt`)
    await run(policyCommand)
    const afterPolicy = await ask()
    const role = `#web-${tag}-hosts`
    expect(afterPolicy).toContain(`web-${tag}-hosts lets ${role} host it, and no identity has that role\n`)
    expect(afterPolicy).toContain(`next:   controller ${hostCommand}\n`)
    expect(afterPolicy).not.toContain('service-policy create')
    await run(hostCommand.replace(/--jwt-file .*/, '-o jwt'))
    expect(await ask()).toContain(
      `web-${tag}-host has never enrolled: controller identity get web-${tag}-host -o jwt > web-${tag}-host.jwt, then`,
    )
    const [host] = await network.get(`/identities?filter=name="web-${tag}-host"`)
    await patch(`/identities/${host.id}`, { externalId: `web-host ${tag}` })
    expect(await ask()).toContain(`start the program of web-${tag}-host that hosts web-${tag}: docs/routers.md`)
  })

  it('because a policy names no identity gets a role in that policy', async () => {
    const { tag, terminator } = pair
    await network.change('DELETE', `/terminators/${terminator}`)
    await network.servicePolicy('Bind', [], [`#web-${tag}`])

    const link = linkOf(await adviceOn(pair), 'terminator')

    expect(link.message).toMatch(/lets identities host it, but names none that exists$/)
    expect(link.next).toMatchObject([
      { operation: 'update', resource: 'service-policies' },
      { operation: 'create', resource: 'identities' },
    ])
  })
})

describe('a router that has not enrolled', () => {
  it('is named with the commands that enroll it', async () => {
    await network.change('POST', `/edge-routers/${pair.router}/re-enroll`)

    const { hint } = linkOf(await adviceOn(pair), 'common-router')

    const name = `router-${pair.tag}`
    expect(hint).toContain(`controller edge-router get ${name} -o jwt > ${name}.jwt`)
    expect(hint).toContain(`ziti router enroll ${name}.yml --jwt ${name}.jwt`)
  })
})

describe('a posture check that does not pass', () => {
  it.each([
    [{ typeId: 'MFA' }, (name: string) => `${name} must pass MFA`],
    [{ typeId: 'DOMAIN', domains: ['a.b'] }, (name: string) => `the machine of ${name} must be in the domain a.b`],
  ])('is named with what the client must do', async (check, describeTask) => {
    const id = await network.make('posture-checks', { name: `${check.typeId} ${pair.tag}`, ...check })
    await patch(`/service-policies/${pair.servicePolicy}`, { postureCheckRoles: [`@${id}`] })
    await world.signInAgain(pair.identity)

    const { hint } = linkOf(await adviceOn(pair), 'posture')

    expect(hint).toBe(describeTask(`laptop-${pair.tag}`))
  })
})

describe('a router that is away', () => {
  it('is named with the time since when it is, and its terminators have not failed', async () => {
    liveFacts.routers.set(pair.router, 'offline')
    liveFacts.disconnectTimes.set(pair.router, Date.parse('2026-01-31T12:00:00Z'))
    const away = `router-${pair.tag} (offline since 2026-01-31T12:00:00.000Z)`

    const advice = await adviceOn(pair)
    const { stdout } = await commandLine(['policy', 'advise', `laptop-${pair.tag}`, `web-${pair.tag}`], env)

    expect(linkOf(advice, 'common-router').message).toBe(`none of the common edge routers is online: ${away}`)
    expect(linkOf(advice, 'terminator').message).toMatch(
      /^no terminator of web-n\d+ can be used: .* \(router-n\d+ is offline since 2026-01-31T12:00:00.000Z\)$/,
    )
    expect(stdout).toMatch(/try: +start the program of router-n\d+ on its machine/)
  })
})

describe('an identity that has never enrolled', () => {
  it.each(['Dial', 'Bind'] as const)('is warned of, although it may %s', async (type) => {
    await network.change('PATCH', `/service-policies/${pair.servicePolicy}`, { type })

    const advice = await adviceOn(pair, type)

    expect(advice.verdict).toBe('allowed')
    expect(linkOf(advice, 'auth-policy').warning).toMatch(/^laptop-n\d+ has not enrolled yet/)
  })

  it('is not warned of once it has a credential', async () => {
    const { id } = await world.signIn()
    const { warning } = linkOf(await adviceOn({ ...pair, identity: id }), 'auth-policy')

    expect(warning).toBeUndefined()
  })
})

describe('a fresh network', () => {
  it('names the missing edge router first, with the commands that go on', async () => {
    const fresh = await testController()
    const only = await smallNetwork(fresh)
    const identity = await only.make('identities', {
      name: 'laptop',
      type: 'Default',
      isAdmin: false,
      roleAttributes: ['staff'],
      enrollment: { ott: true },
    })
    const service = await only.service('web', ['web'])
    await only.servicePolicy('Dial', ['#staff'], ['#web'])

    const advice = await advise(fresh.controller, fresh.system, identity, service, 'Dial')

    await fresh.close()
    const [first] = advice.links.filter(({ outcome }) => outcome === 'failed')
    expect(first).toMatchObject({ link: 'edge-router-policy', message: 'there is no edge router' })
    expect(first?.next?.[0]).toMatchObject({ operation: 'create', resource: 'edge-routers' })
    const creations = advice.links.flatMap(({ next = [] }) => next.filter((one) => one.resource === 'edge-routers'))
    expect(creations).toHaveLength(1)
    expect(first?.remedy).toBeUndefined()
  })
})

describe('asking for advice', () => {
  it.each([
    ['identity', () => `/controller/policy/advise/nope/${pair.service}`, 404],
    ['service', () => `/controller/policy/advise/${pair.identity}/nope`, 404],
    ['type', () => `/controller/policy/advise/${pair.identity}/${pair.service}?type=Fly`, 400],
  ])('refuses an unknown %s', async (_what, path, status) => {
    expect((await network.call('GET', path())).status).toBe(status)
  })
})
