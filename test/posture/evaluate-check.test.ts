// Each kind of posture check: what passes it, what fails it, and what leaves it unknown; and the same against a plain reading of the rules.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { toHexDigits } from '../../src/definitions/schema/hexadecimal.ts'
import { evaluateCheck } from '../../src/policy/posture/evaluate-check.ts'
import type { MachineState, MfaState, PostureFacts, ProcessResponse } from '../../src/policy/posture/machine-state.ts'
import { computeTimeoutRemaining, isLegacyClient, PROMPT_GRACE_MS } from '../../src/policy/posture/mfa.ts'
import { compilePostureCheck, type MfaCheck } from '../../src/policy/posture/posture-checks.ts'

const NOW = 1_700_000_000_000
const NOTHING: PostureFacts = { machine: undefined, apiSessions: [], strictestMfaTimeoutMs: Number.POSITIVE_INFINITY }
const EMPTY_MACHINE: MachineState = { processesByCheck: new Map(), processesByPath: new Map() }

const withMachine = (machine: Partial<MachineState>): PostureFacts => ({
  ...NOTHING,
  machine: { ...EMPTY_MACHINE, ...machine },
})
const storedFields = { at: NOW, postureCheckId: 'check' }
const check = (typeId: string, details: object) => compilePostureCheck({ id: 'check', typeId, details })
const evidenceOf = (typeId: string, details: object, facts: PostureFacts, now = NOW) =>
  evaluateCheck(check(typeId, details), facts, now).evidence

const runningSystem = (type: string, version: string) =>
  withMachine({ os: { ...storedFields, type, version, build: null } })
const addresses = (...macAddresses: string[]) =>
  withMachine({ mac: { ...storedFields, macAddresses: macAddresses.map(toHexDigits) } })
const inDomain = (domain: string) => withMachine({ domain: { ...storedFields, domain } })

const reportedProcess = (values: Partial<ProcessResponse> = {}): ProcessResponse => ({
  ...storedFields,
  path: '/bin/agent',
  isRunning: true,
  hash: '',
  signerFingerprints: [],
  ...values,
})
const underCheck = (values: Partial<ProcessResponse> = {}) =>
  withMachine({ processesByCheck: new Map([['check', reportedProcess(values)]]) })
const atPaths = (...processes: Partial<ProcessResponse>[]) =>
  withMachine({
    processesByPath: new Map(processes.map((values) => [values.path as string, reportedProcess(values)])),
  })

const apiSession = (values: Partial<MfaState> = {}): MfaState => ({
  id: 'session',
  mfaPassedAt: null,
  wokenAt: null,
  unlockedAt: null,
  ...values,
})
const withSessions = (...apiSessions: MfaState[]): PostureFacts => ({ ...NOTHING, apiSessions })

describe('any posture check', () => {
  it.each([
    ['OS', { operatingSystems: [{ type: 'Linux' }] }],
    ['DOMAIN', { domains: ['a.b'] }],
    ['MAC', { macAddresses: ['aabbcc'] }],
    ['PROCESS', { process: { osType: 'Linux', path: '/bin/agent' } }],
    ['PROCESS_MULTI', { semantic: 'AllOf', processes: [{ osType: 'Linux', path: '/bin/agent' }] }],
    ['MFA', {}],
  ])('of the type %s is unknown as long as nothing is known of the machine', (typeId, details) => {
    expect(evidenceOf(typeId, details, NOTHING)).toBe('unknown')
    if (typeId !== 'MFA') expect(evidenceOf(typeId, details, withMachine({}))).toBe('unknown')
  })

  it.each([
    ['OS', { operatingSystems: [] }, runningSystem('Linux', '6.1.0')],
    ['DOMAIN', { domains: [] }, inDomain('a.b')],
    ['MAC', { macAddresses: [] }, addresses('aabbcc')],
    ['PROCESS_MULTI', { semantic: 'AllOf', processes: [] }, atPaths({ path: '/bin/agent' })],
    ['PROCESS_MULTI', { semantic: 'AnyOf', processes: [] }, atPaths({ path: '/bin/agent' })],
  ])('of the type %s that names nothing passes for no machine', (typeId, details, facts) => {
    expect(evidenceOf(typeId, details, facts)).toBe('failing')
  })
})

describe('a check of the operating system', () => {
  const systems = { operatingSystems: [{ type: 'Linux', versions: ['>=5.0.0 <6.0.0', '6.1.x'] }, { type: 'macOS' }] }

  it.each([
    ['Linux', '5.10.3', 'passing'],
    ['LINUX', '6.1.99', 'passing'],
    ['Linux', '6.0.0', 'failing'],
    ['Linux', '4.19.0', 'failing'],
    // A type without versions passes in every version, also in one that cannot be read.
    ['macos', 'Sonoma', 'passing'],
    ['Windows', '10.0.19045', 'failing'],
    // Not versions of three numbers.
    ['Linux', '5.10', 'failing'],
    ['Linux', '', 'failing'],
    ['Linux', 'latest', 'failing'],
    ['Linux', '05.1.0', 'failing'],
    // A prerelease comes before its release; build metadata does not count.
    ['Linux', '5.0.0-91-generic', 'failing'],
    ['Linux', '5.15.0-91-generic', 'passing'],
    ['Linux', '5.15.0+build.7', 'passing'],
  ])('finds %s %s %s', (type, version, evidence) => {
    expect(evidenceOf('OS', systems, runningSystem(type, version))).toBe(evidence)
  })
})

describe('a check of the domain', () => {
  it.each([
    ['corp.example.com', 'passing'],
    ['CORP.Example.COM', 'passing'],
    ['other.example.com', 'failing'],
    ['', 'failing'],
  ])('finds "%s" %s, whatever the case on both sides', (domain, evidence) => {
    expect(evidenceOf('DOMAIN', { domains: ['Corp.example.com'] }, inDomain(domain))).toBe(evidence)
  })
})

describe('a check of network addresses', () => {
  it.each(['00:1A:2b:3c:4d:5e', '00-1a-2B-3c-4d-5e', '001a.2b3c.4d5e', '001A2B3C4D5E'])(
    'means one address by %s',
    (notation) => {
      for (const other of ['00:1a:2b:3c:4d:5e', notation]) {
        expect(evidenceOf('MAC', { macAddresses: [notation] }, addresses('ffffffffffff', other))).toBe('passing')
      }
      expect(evidenceOf('MAC', { macAddresses: [notation] }, addresses('001a2b3c4d5f'))).toBe('failing')
      expect(evidenceOf('MAC', { macAddresses: [notation] }, addresses())).toBe('failing')
    },
  )
})

describe('a check of a process', () => {
  const process = { osType: 'Linux', path: '/bin/agent', hashes: ['AA:bb', 'cc'], signerFingerprint: 'F0:0D' }

  it.each([
    [{ hash: 'aabb', signerFingerprints: ['beef', 'f00d'] }, 'passing'],
    [{ hash: 'cc', signerFingerprints: ['f00d'] }, 'passing'],
    [{ hash: 'cc', signerFingerprints: ['f00d'], isRunning: false }, 'failing'],
    [{ hash: 'dd', signerFingerprints: ['f00d'] }, 'failing'],
    [{ hash: 'cc', signerFingerprints: [] }, 'failing'],
    // Neither path nor operating system is compared: the check is named by its id.
    [{ hash: 'cc', signerFingerprints: ['f00d'], path: null }, 'passing'],
  ] as const)('finds %j %s', (values, evidence) => {
    expect(evidenceOf('PROCESS', { process }, underCheck(values))).toBe(evidence)
  })

  it('is unknown if only another check, or only the path, was reported', () => {
    expect(evidenceOf('PROCESS', { process }, atPaths({ path: '/bin/agent', hash: 'cc' }))).toBe('unknown')
  })

  it('asks only that it runs if it names neither hash nor signer', () => {
    const plain = { process: { osType: 'Linux', path: '/bin/agent', hashes: null } }
    expect(evidenceOf('PROCESS', plain, underCheck({ hash: 'anything' }))).toBe('passing')
  })
})

describe('a check of several processes', () => {
  const processes = [
    { osType: 'Linux', path: '/bin/a', hashes: ['aa'], signerFingerprints: [] },
    { osType: 'Windows', path: 'C:\\b.exe', hashes: [], signerFingerprints: ['f00d', 'beef'] },
  ]
  const a = { path: '/bin/a', hash: 'aa' }
  const b = { path: 'C:\\b.exe', signerFingerprints: ['beef'] }

  it.each([
    ['AllOf', [a, b], 'passing'],
    ['AllOf', [a], 'unknown'],
    ['AllOf', [a, { ...b, signerFingerprints: [] }], 'failing'],
    ['AllOf', [{ ...a, isRunning: false }], 'failing'],
    ['AnyOf', [a], 'passing'],
    ['AnyOf', [{ ...a, hash: 'ab' }, b], 'passing'],
    ['AnyOf', [{ ...a, hash: 'ab' }], 'unknown'],
    [
      'AnyOf',
      [
        { ...a, hash: 'ab' },
        { ...b, isRunning: false },
      ],
      'failing',
    ],
    // The path counts as it is written.
    ['AnyOf', [{ ...a, path: '/BIN/A' }], 'unknown'],
  ])('%s with %j is %s', (semantic, reported, evidence) => {
    expect(evidenceOf('PROCESS_MULTI', { semantic, processes }, atPaths(...reported))).toBe(evidence)
  })
})

describe('a check of MFA', () => {
  const second = 1_000

  it('fails for an API session that has not passed it, and passes without end once it has', () => {
    expect(evidenceOf('MFA', {}, withSessions(apiSession()))).toBe('failing')
    const passed = withSessions(apiSession({ mfaPassedAt: NOW }))
    expect(evaluateCheck(check('MFA', {}), passed, NOW + 10 ** 12)).toEqual({
      evidence: 'passing',
      failsAt: Number.POSITIVE_INFINITY,
    })
  })

  it('times out after the last millisecond of its timeout, and passes again once MFA is', () => {
    const details = { timeoutSeconds: 60 }
    const facts = withSessions(apiSession({ mfaPassedAt: NOW }))
    expect(evidenceOf('MFA', details, facts, NOW + 60 * second)).toBe('passing')
    expect(evidenceOf('MFA', details, facts, NOW + 60 * second + 1)).toBe('failing')
    expect(evaluateCheck(check('MFA', details), facts, NOW).failsAt).toBe(NOW + 60 * second + 1)
    const again = withSessions(apiSession({ mfaPassedAt: NOW + 61 * second }))
    expect(evidenceOf('MFA', details, again, NOW + 61 * second)).toBe('passing')
  })

  it.each([
    ['promptOnWake', 'wokenAt'],
    ['promptOnUnlock', 'unlockedAt'],
  ])('with %s passes for five minutes after the event, unless MFA follows it', (flag, event) => {
    const facts = withSessions(apiSession({ mfaPassedAt: NOW, [event]: NOW + second }))
    const end = NOW + second + PROMPT_GRACE_MS
    expect(evidenceOf('MFA', { [flag]: true }, facts, end - 1)).toBe('passing')
    expect(evidenceOf('MFA', { [flag]: true }, facts, end)).toBe('failing')
    expect(evaluateCheck(check('MFA', { [flag]: true }), facts, NOW).failsAt).toBe(end)
    expect(evidenceOf('MFA', {}, facts, end)).toBe('passing')
    const before = withSessions(apiSession({ mfaPassedAt: NOW, [event]: NOW - second }))
    expect(evidenceOf('MFA', { [flag]: true }, before, end)).toBe('passing')
  })

  it('times out with the strictest check of the identity', () => {
    const facts = { ...withSessions(apiSession({ mfaPassedAt: NOW })), strictestMfaTimeoutMs: 30 * second }
    expect(evidenceOf('MFA', { timeoutSeconds: 60 }, facts, NOW + 30 * second)).toBe('passing')
    expect(evidenceOf('MFA', { timeoutSeconds: 60 }, facts, NOW + 31 * second)).toBe('failing')
    expect(evidenceOf('MFA', {}, facts, NOW + 31 * second)).toBe('failing')
  })

  it('without an API session holds for all of the identity, and is unknown if they differ', () => {
    const [passed, open] = [apiSession({ mfaPassedAt: NOW }), apiSession()]
    expect(evidenceOf('MFA', {}, withSessions(passed, passed))).toBe('passing')
    expect(evidenceOf('MFA', {}, withSessions(open, open))).toBe('failing')
    expect(evidenceOf('MFA', {}, withSessions(passed, open))).toBe('unknown')
  })

  it.each([
    ['no timeout', {}, { mfaPassedAt: NOW }, false, -1],
    [
      'no timeout, although a prompt is pending',
      { promptOnWake: true },
      { mfaPassedAt: NOW, wokenAt: NOW + 1 },
      false,
      -1,
    ],
    ['MFA not passed', { timeoutSeconds: 60 }, {}, false, 0],
    ['MFA just passed', { timeoutSeconds: 60 }, { mfaPassedAt: NOW }, false, 60],
    ['MFA passed ten seconds ago', { timeoutSeconds: 60 }, { mfaPassedAt: NOW - 10 * second }, false, 50],
    ['MFA timed out', { timeoutSeconds: 60 }, { mfaPassedAt: NOW - 61 * second }, false, 0],
    [
      'a prompt that ends first',
      { timeoutSeconds: 3600, promptOnUnlock: true },
      { mfaPassedAt: NOW - second, unlockedAt: NOW },
      false,
      300,
    ],
    [
      'a prompt that ends later',
      { timeoutSeconds: 100, promptOnUnlock: true },
      { mfaPassedAt: NOW - second, unlockedAt: NOW },
      false,
      99,
    ],
    ['a legacy client', { timeoutSeconds: 60, ignoreLegacyEndpoints: true }, { mfaPassedAt: NOW }, true, -1],
    ['a legacy client that is not ignored', { timeoutSeconds: 60 }, { mfaPassedAt: NOW }, true, 60],
    [
      'a client that is not a legacy one',
      { timeoutSeconds: 60, ignoreLegacyEndpoints: true },
      { mfaPassedAt: NOW },
      false,
      60,
    ],
    ['a legacy client without MFA', { timeoutSeconds: 60, ignoreLegacyEndpoints: true }, {}, true, 0],
  ] as const)('shows what remains with %s', (_case, details, session, isLegacy, remaining) => {
    const how = { strictestMfaTimeoutMs: Number.POSITIVE_INFINITY, isLegacyClient: isLegacy }
    expect(computeTimeoutRemaining(check('MFA', details) as MfaCheck, apiSession(session), how, NOW)).toBe(remaining)
  })

  it.each([
    [{ type: 'ziti-sdk-c', version: '0.25.0' }, false],
    [{ type: 'ziti-sdk-c', version: 'v1.5.2' }, false],
    [{ type: 'ziti-sdk-c', version: '0.24.9' }, true],
    [{ type: 'ziti-sdk-c', version: 'unknown' }, true],
    [{ type: 'ziti-sdk-golang', version: '1.0.0' }, true],
    [{}, true],
  ])('takes %j for a legacy client: %s', (sdkInfo, isLegacy) => {
    expect(isLegacyClient(sdkInfo)).toBe(isLegacy)
  })
})

// ---- against a plain reading of the rules ----------------------------------------------------------------------------

const hexText = fc.stringMatching(/^[0-9a-fA-F]{1,4}$/)
const spelled = (digits: string) =>
  fc.constantFrom(digits, digits.toUpperCase(), digits.split('').join(':'), `${digits} `)
const name = fc.constantFrom('a', 'b', 'c')
const hexSet = fc.uniqueArray(fc.constantFrom('aa', 'bb', 'cc'), { maxLength: 3 })
const requiredProcess = fc.record({
  osType: fc.constant('Linux'),
  path: name,
  hashes: hexSet,
  signerFingerprints: hexSet,
})
const processReport = fc.record({
  path: name,
  isRunning: fc.boolean(),
  hash: fc.constantFrom('', 'aa', 'bb'),
  signerFingerprints: hexSet,
})

type Required = { path: string; hashes: string[]; signerFingerprints: string[] }
type Reported = { path: string; isRunning: boolean; hash: string; signerFingerprints: string[] }

function isSatisfied(required: Required, reported: Reported): boolean {
  if (!reported.isRunning) return false
  if (required.hashes.length > 0 && required.hashes.indexOf(reported.hash) < 0) return false
  if (required.signerFingerprints.length === 0) return true
  for (const signer of reported.signerFingerprints) if (required.signerFingerprints.includes(signer)) return true
  return false
}

describe('a plain reading of the rules agrees', () => {
  it('on domains and addresses in any spelling', () => {
    const list = fc.array(hexText, { minLength: 1, maxLength: 4 })
    const reports = fc.array(hexText.chain(spelled), { maxLength: 4 })
    fc.assert(
      fc.property(list, reports, (accepted, reported) => {
        const plain = (text: string) => text.toLowerCase().split(':').join('').trim()
        const isExpected = reported.some((one) => accepted.some((other) => plain(one) === plain(other)))
        expect(evidenceOf('MAC', { macAddresses: accepted }, addresses(...reported))).toBe(
          isExpected ? 'passing' : 'failing',
        )
        const [domain = ''] = reported
        const isMember = accepted.some((one) => one.toLowerCase() === domain.toLowerCase())
        expect(evidenceOf('DOMAIN', { domains: accepted }, inDomain(domain))).toBe(isMember ? 'passing' : 'failing')
      }),
    )
  })

  it('on one process', () => {
    fc.assert(
      fc.property(
        requiredProcess,
        processReport,
        ({ signerFingerprints: [signerFingerprint], ...process }, reported) => {
          const required = {
            ...process,
            signerFingerprints: signerFingerprint === undefined ? [] : [signerFingerprint],
          }
          const evidence = evidenceOf('PROCESS', { process: { ...process, signerFingerprint } }, underCheck(reported))
          expect(evidence).toBe(isSatisfied(required, reported) ? 'passing' : 'failing')
        },
      ),
    )
  })

  it('on several processes', () => {
    const processes = fc.uniqueArray(requiredProcess, { minLength: 1, selector: ({ path }) => path })
    const reports = fc.uniqueArray(processReport, { selector: ({ path }) => path })
    fc.assert(
      fc.property(fc.constantFrom('AllOf', 'AnyOf'), processes, reports, (semantic, required, reported) => {
        const states = required.map((one) => {
          const report = reported.find(({ path }) => path === one.path)
          return report === undefined ? 'unknown' : isSatisfied(one, report) ? 'passing' : 'failing'
        })
        // The evidence that decides alone comes first, then the one that leaves it open.
        const order = semantic === 'AllOf' ? ['failing', 'unknown', 'passing'] : ['passing', 'unknown', 'failing']
        const expected = order.find((state) => states.includes(state as (typeof states)[number]))
        expect(evidenceOf('PROCESS_MULTI', { semantic, processes: required }, atPaths(...reported))).toBe(expected)
      }),
    )
  })

  it('on MFA at every moment, and names the moment at which it fails', () => {
    const minute = fc.integer({ min: 0, max: 12 }).map((minutes) => NOW + minutes * 60_000)
    const event = fc.option(minute)
    const session = fc.record({ mfaPassedAt: event, wokenAt: event, unlockedAt: event })
    const rules = fc.record({
      timeoutSeconds: fc.constantFrom(-1, 60, 180, 600),
      promptOnWake: fc.boolean(),
      promptOnUnlock: fc.boolean(),
    })
    const strictest = fc.constantFrom(Number.POSITIVE_INFINITY, 120_000)
    const isExpectedAt = (
      { timeoutSeconds, promptOnWake, promptOnUnlock }: { [K: string]: number | boolean },
      { mfaPassedAt, wokenAt, unlockedAt }: Pick<MfaState, 'mfaPassedAt' | 'wokenAt' | 'unlockedAt'>,
      limit: number,
      now: number,
    ) => {
      if (mfaPassedAt === null) return false
      const own = (timeoutSeconds as number) > 0 ? (timeoutSeconds as number) * 1000 : Number.POSITIVE_INFINITY
      if (now - mfaPassedAt > own || now - mfaPassedAt > limit) return false
      const isPromptDone = (prompts: unknown, at: number | null) =>
        !prompts || at === null || at <= mfaPassedAt || now - at < 300_000
      return isPromptDone(promptOnWake, wokenAt) && isPromptDone(promptOnUnlock, unlockedAt)
    }
    fc.assert(
      fc.property(rules, session, strictest, minute, (details, times, strictestMfaTimeoutMs, now) => {
        const facts = { ...withSessions(apiSession(times)), strictestMfaTimeoutMs }
        const { evidence, failsAt } = evaluateCheck(check('MFA', details), facts, now)
        expect(evidence).toBe(isExpectedAt(details, times, strictestMfaTimeoutMs, now) ? 'passing' : 'failing')
        if (evidence !== 'passing' || failsAt === Number.POSITIVE_INFINITY) return
        expect(isExpectedAt(details, times, strictestMfaTimeoutMs, failsAt - 1)).toBe(true)
        expect(isExpectedAt(details, times, strictestMfaTimeoutMs, failsAt)).toBe(false)
      }),
    )
  })
})
