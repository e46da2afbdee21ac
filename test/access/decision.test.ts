// The access decision by itself: which policies count, what their posture checks amount to together, and until when it holds.
import { describe, expect, it } from 'vitest'
import { decide, PostureEvaluation, type PostureSource } from '../../src/access/decision.ts'
import { PolicyIndex, type PolicyType } from '../../src/policy/policy-index.ts'
import type { MachineState, MfaState } from '../../src/policy/posture/machine-state.ts'
import { compilePostureCheck } from '../../src/policy/posture/posture-checks.ts'

const NOW = 1_700_000_000_000
const MINUTE = 60_000
const HOUR = 60 * MINUTE
const GRACE = 5 * MINUTE

const laptop = { id: 'laptop', attributes: ['staff'] }

/** The checks of a network, by id; a machine in the domain a.b passes `domain`, and fails `other domain`. */
const CHECKS = {
  domain: { typeId: 'DOMAIN', details: { domains: ['a.b'] } },
  'other domain': { typeId: 'DOMAIN', details: { domains: ['c.d'] } },
  system: { typeId: 'OS', details: { operatingSystems: [{ type: 'Linux' }] } },
  mfa: { typeId: 'MFA', details: {} },
  'mfa for an hour': { typeId: 'MFA', details: { timeoutSeconds: 3_600 } },
  'mfa for a minute': { typeId: 'MFA', details: { timeoutSeconds: 60 } },
  'mfa after waking': { typeId: 'MFA', details: { promptOnWake: true } },
} as const

type CheckId = keyof typeof CHECKS

interface PolicyWords {
  readonly type?: PolicyType
  readonly identities?: string[]
  readonly services?: string[]
  readonly checks?: readonly CheckId[]
}

/** An index with the services web and mail, all the checks, and these policies; by default for the service web. */
function indexWith(...policies: PolicyWords[]): PolicyIndex {
  const index = new PolicyIndex()
  for (const id of ['web', 'mail']) index.setService({ id, attributes: [] })
  for (const [id, { typeId, details }] of Object.entries(CHECKS))
    index.setPostureCheck({ id, attributes: [] }, compilePostureCheck({ id, typeId, details }))
  for (const [position, policy] of policies.entries()) {
    const { type = 'Dial', identities = ['#staff'], services = ['@web'], checks = [] } = policy
    const roles = { identityRoles: identities, serviceRoles: services }
    const postureCheckRoles = checks.map((check) => `@${check}`)
    const id = `policy ${position}`
    index.setServicePolicy({ id, name: id, type, semantic: 'AnyOf', ...roles, postureCheckRoles })
  }
  return index
}

const inDomain = (domain: string): MachineState => ({
  domain: { at: NOW, postureCheckId: 'any', domain },
  processesByCheck: new Map(),
  processesByPath: new Map(),
})

const apiSession = (values: Partial<MfaState> = {}): MfaState => ({
  id: 'session',
  mfaPassedAt: null,
  wokenAt: null,
  unlockedAt: null,
  ...values,
})

/** A laptop in the domain a.b, and what its API sessions prove. */
function sourceWith(...apiSessions: MfaState[]): PostureSource {
  return {
    findMachine: (identityId) => (identityId === laptop.id ? inDomain('a.b') : undefined),
    listApiSessions: (identityId, apiSessionId) =>
      identityId === laptop.id ? apiSessions.filter(({ id }) => apiSessionId === undefined || id === apiSessionId) : [],
    reportsToRouters: (id) => id === 'reporting to routers',
    now: () => NOW,
    withHypothetical: (_changes, ask) => ask(),
  }
}

const QUESTION = { identity: laptop, serviceId: 'web', type: 'Dial', apiSessionId: 'session' } as const

const decideBy = (policies: readonly PolicyWords[], source = sourceWith(apiSession()), question = {}) =>
  decide(indexWith(...policies), source, { ...QUESTION, ...question })

/** Of the policies with these checks, in this order and in the other one. */
function decideInBothOrders(checks: readonly (readonly CheckId[])[], source = sourceWith(apiSession())) {
  const policies = checks.map((ids) => ({ checks: ids }))
  return [policies, policies.toReversed()].map((ordered) => decideBy(ordered, source))
}

describe('a decision', () => {
  it('grants nothing without a policy', () => {
    expect(decideBy([])).toMatchObject({ isGranted: false, isAllowed: false, evidence: 'failing', policies: [] })
  })

  it.each<[string, PolicyWords]>([
    ['for another identity', { identities: ['#guests'] }],
    ['for another service', { services: ['@mail'] }],
    ['of the other type', { type: 'Bind' }],
  ])('grants nothing by a policy %s', (_what, policy) => {
    expect(decideBy([policy])).toMatchObject({ isGranted: false, isAllowed: false, policies: [] })
  })

  it('allows by a policy without posture checks, whatever time does', () => {
    const { policies, ...decision } = decideBy([{}])

    expect(decision).toEqual({
      isGranted: true,
      isAllowed: true,
      evidence: 'passing',
      failsAt: Number.POSITIVE_INFINITY,
    })
    expect(policies).toMatchObject([{ policy: { id: 'policy 0' }, evidence: 'passing', findings: [] }])
  })

  it('grants, but does not allow, by a policy with a check that fails', () => {
    const { policies, ...decision } = decideBy([{ checks: ['domain', 'other domain'] }])

    expect(decision).toMatchObject({ isGranted: true, isAllowed: false, evidence: 'failing' })
    expect(policies).toMatchObject([
      {
        evidence: 'failing',
        findings: [
          { check: { id: 'domain' }, evidence: 'passing' },
          { check: { id: 'other domain' }, evidence: 'failing' },
        ],
      },
    ])
  })

  it('does not take what is unknown for passing', () => {
    expect(decideBy([{ checks: ['domain', 'system'] }])).toMatchObject({ isAllowed: false, evidence: 'unknown' })
  })

  it('allows by one policy that passes, whatever the others find', () => {
    for (const decision of decideInBothOrders([['other domain'], ['domain'], ['system']]))
      expect(decision).toMatchObject({ isAllowed: true, evidence: 'passing', failsAt: Number.POSITIVE_INFINITY })
  })

  it('is unknown if no policy passes, and one may', () => {
    for (const decision of decideInBothOrders([['other domain'], ['system']]))
      expect(decision).toMatchObject({ isGranted: true, isAllowed: false, evidence: 'unknown' })
  })

  it('lists the policies of its type that link both, and no other', () => {
    const others = [{ type: 'Bind' as const }, { services: ['@mail'] }, { identities: ['#guests'] }]
    const { policies } = decideBy([{ checks: ['domain'] }, ...others, {}])

    expect(policies.map(({ policy }) => policy.id)).toEqual(['policy 0', 'policy 4'])
  })
})

describe('a decision that time ends', () => {
  const passedAt = NOW - 30_000
  const wokenAt = NOW - 10_000
  const afterMfa = sourceWith(apiSession({ mfaPassedAt: passedAt }))
  const afterWaking = sourceWith(apiSession({ mfaPassedAt: passedAt, wokenAt }))

  it('holds until its policy fails', () => {
    const { isAllowed, failsAt } = decideBy([{ checks: ['domain', 'mfa for a minute'] }], afterMfa)

    // MFA is still good at the last millisecond of its timeout.
    expect([isAllowed, failsAt]).toEqual([true, passedAt + MINUTE + 1])
  })

  it('holds until the first of the checks of one policy fails', () => {
    for (const checks of [
      ['mfa after waking', 'mfa for an hour'],
      ['mfa for an hour', 'mfa after waking'],
    ] as const)
      expect(decideBy([{ checks }], afterWaking).failsAt).toBe(wokenAt + GRACE)
  })

  it('holds until the last of the policies fails that pass now', () => {
    for (const { failsAt } of decideInBothOrders(
      [['mfa after waking'], ['mfa for an hour'], ['other domain']],
      afterWaking,
    ))
      expect(failsAt).toBe(passedAt + HOUR + 1)
    for (const { failsAt } of decideInBothOrders([['mfa after waking'], ['domain']], afterWaking))
      expect(failsAt).toBe(Number.POSITIVE_INFINITY)
  })

  it('is that MFA has failed at the very instant until which it held', () => {
    const at = (now: number) => decideBy([{ checks: ['mfa for a minute'] }], { ...afterMfa, now: () => now })

    expect(at(passedAt + MINUTE)).toMatchObject({ isAllowed: true, evidence: 'passing' })
    expect(at(passedAt + MINUTE + 1)).toMatchObject({ isAllowed: false, evidence: 'failing' })
  })
})

describe('MFA', () => {
  const passedSession = apiSession({ mfaPassedAt: NOW - 2 * MINUTE })
  const otherSession = apiSession({ id: 'other' })

  it('counts for the API session that passed it', () => {
    const source = sourceWith(passedSession, otherSession)
    const policies = [{ checks: ['mfa'] as const }]

    expect(decideBy(policies, source).evidence).toBe('passing')
    expect(decideBy(policies, source, { apiSessionId: 'other' }).evidence).toBe('failing')
    expect(decideBy(policies, source, { apiSessionId: 'ended' }).evidence).toBe('unknown')
  })

  it('is unknown of an identity whose API sessions differ, and known if they agree', () => {
    const policies = [{ checks: ['mfa'] as const }]
    const question = { apiSessionId: undefined }

    expect(decideBy(policies, sourceWith(passedSession, otherSession), question).evidence).toBe('unknown')
    expect(decideBy(policies, sourceWith(passedSession, { ...passedSession, id: 'other' }), question).evidence).toBe(
      'passing',
    )
  })

  it.each<[string, PolicyWords]>([
    ['for the same service', {}],
    ['for another service', { services: ['@mail'] }],
    ['to host', { type: 'Bind' }],
  ])('times out for every policy with the strictest one of the identity, also if that one is %s', (_which, words) => {
    const strict = { ...words, checks: ['mfa for an hour', 'mfa for a minute', 'mfa', 'domain'] as const }
    const policies = [{ checks: ['mfa for an hour'] as const }, strict]

    for (const ordered of [policies, policies.toReversed()])
      expect(decideBy(ordered, sourceWith(passedSession))).toMatchObject({ isAllowed: false, evidence: 'failing' })
  })

  it('times out with the strictest policy, also if the API session that comes first has not passed it', () => {
    const policies = [{ checks: ['mfa'] as const }, { services: ['@mail'], checks: ['mfa for a minute'] as const }]

    // Both fail: otherwise they would differ.
    expect(decideBy(policies, sourceWith(otherSession, passedSession), { apiSessionId: undefined }).evidence).toBe(
      'failing',
    )
  })

  it('does not time out with a policy of other identities', () => {
    const policies = [{ checks: ['mfa'] as const }, { identities: ['#guests'], checks: ['mfa for a minute'] as const }]

    expect(decideBy(policies, sourceWith(passedSession))).toMatchObject({
      evidence: 'passing',
      failsAt: Number.POSITIVE_INFINITY,
    })
  })
})

describe('a decision for an API session whose client reports to routers', () => {
  const reporting = { apiSessionId: 'reporting to routers' }
  const passed = apiSession({ id: 'reporting to routers', mfaPassedAt: NOW })
  const decideFor = (checks: readonly CheckId[], session = passed) =>
    decideBy([{ checks }], sourceWith(session), reporting)

  it('leaves the machine to the router, whatever the controller knows of it', () => {
    for (const check of ['system', 'other domain', 'domain'] as const)
      expect(decideFor([check])).toMatchObject({ isAllowed: true, policies: [{ findings: [] }] })
  })

  it('judges the second factor, with its time', () => {
    const unpassed = apiSession({ id: 'reporting to routers' })

    expect(decideFor(['system', 'mfa'], unpassed)).toMatchObject({ isAllowed: false, policies: [{ findings: [{}] }] })
    expect(decideFor(['system', 'mfa for an hour'])).toMatchObject({ isAllowed: true, failsAt: NOW + HOUR + 1 })
  })
})

describe('an evaluation', () => {
  it('reads the time and the machine once, so that all its findings are of one moment', () => {
    let readings = 0
    const source = {
      ...sourceWith(apiSession({ mfaPassedAt: NOW })),
      findMachine: () => inDomain(readings++ === 0 ? 'a.b' : 'c.d'),
      now: () => NOW + readings * HOUR,
    }
    const index = indexWith({ checks: ['mfa for a minute', 'domain'] }, { checks: ['domain', 'mfa for an hour'] })
    const evaluation = new PostureEvaluation(index, source, QUESTION)

    const policies = index.findServicePolicies(laptop)
    const evidence = policies.map((policy) => evaluation.evaluatePolicy(policy).evidence)

    expect(evidence).toEqual(['passing', 'passing'])
    expect([readings, evaluation.now]).toEqual([1, NOW])
  })

  it('tells its moment before it has evaluated anything', () => {
    expect(new PostureEvaluation(indexWith(), sourceWith(), QUESTION).now).toBe(NOW)
  })

  it('finds everything unknown of an identity of which nothing is known', () => {
    const unknown = { identity: { id: 'phone', attributes: ['staff'] } }

    for (const check of ['domain', 'mfa'] as const)
      expect(decideBy([{ checks: [check] }], sourceWith(apiSession()), unknown).evidence).toBe('unknown')
  })
})
