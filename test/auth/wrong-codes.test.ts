// The limits on wrong codes: guesses stay rare, and a client that knows the password cannot keep the owner from the factor.
import { beforeAll, describe, expect, it } from 'vitest'
import { addWrongCode, type CodeSender, chooseShare } from '../../src/authentication/mfa/wrong-codes.ts'
import type { WrongCode } from '../../src/definitions/resources/mfa-enrollments.ts'
import { type AuthenticatorApp, STEP_MS } from '../world/authenticator-app.ts'
import { MANAGEMENT, testController } from '../world/controller.ts'
import { LIMITED, MfaPeople, MfaSession, outcome, WRONG } from '../world/mfa.ts'
import { People, type Person } from '../world/people.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
let people: People
let mfa: MfaPeople

beforeAll(async () => {
  people = await People.in(world)
  mfa = new MfaPeople(world, people)
})

const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE
const HOME = '192.0.2.1'
const THIEF = '198.51.100.7'
const now = () => world.clock.now()
const ENDED = [401, 'UNAUTHORIZED']

/** Sends wrong codes from an address in new sessions, until they are not looked at any more. Returns how many were wrong. */
async function guess(
  person: Person,
  { from, makeCode }: { readonly from: string; readonly makeCode: () => string },
  people = mfa,
): Promise<number> {
  for (let count = 0; ; ) {
    const session = await people.signIn(person, { from })
    for (let at = 0; at < 5; at += 1) {
      const { status } = await session.pass(makeCode())
      if (status === 429) return count
      count += 1
    }
  }
}

/** Lets time pass until the app shows a code that does not have the form of a recovery code, too: those have a share of their own. */
function awaitPlainCode(device: AuthenticatorApp, clock = world.clock): void {
  while (!/[0189]/.test(device.code(clock.now()))) clock.advance(STEP_MS)
}

const wrongTotp = (device: AuthenticatorApp) => () => device.wrongCode(now())
const wrongRecoveryCodes = () => 'AAAAAA'

describe('the wrong codes of a session', () => {
  it('end it with the fifth one', async () => {
    const { person, session: full, device } = await mfa.enrolled()
    const session = await mfa.signIn(person)

    for (let at = 0; at < 5; at += 1) expect(outcome(await session.pass(device.wrongCode(now())))).toEqual(WRONG)

    const after = await session.pass(device.code(now()))
    expect([...(outcome(after) as unknown[]), after.body.error.cause.code]).toEqual([...ENDED, 'SESSION_UNKNOWN'])
    // Another session of the identity passes the factor, and none was locked out.
    expect(outcome(await (await mfa.signIn(person)).pass(device.code(now())))).toBe(200)
    expect(await full.isFull()).toBe(true)
    expect((await people.manage('GET', `/identities/${person.id}`)).disabled).toBe(false)
  })

  it('end a full session, too, by whatever operation', async () => {
    const { session, device } = await mfa.enrolled({}, { base: MANAGEMENT })
    const wrong = device.wrongCode(now())

    const responses = [
      await session.remove(wrong),
      await session.recoveryCodes(wrong),
      await session.replaceCodes(wrong),
      await session.send('POST', '/controller/mfa/recovery-codes', { code: wrong }),
      await session.pass(wrong),
    ]

    for (const response of responses) expect(outcome(response)).toEqual(WRONG)
    expect(outcome(await session.show())).toEqual(ENDED)
  })

  it('are counted from the last accepted code on', async () => {
    const { person, device } = await mfa.enrolled()
    const session = await mfa.signIn(person)
    for (let at = 0; at < 4; at += 1) await session.pass(device.wrongCode(now()))

    expect(outcome(await session.pass(device.code(now())))).toBe(200)

    for (let at = 0; at < 4; at += 1) expect(outcome(await session.pass(device.wrongCode(now())))).toEqual(WRONG)
    expect(await session.isFull()).toBe(true)
  })

  it('count when they come at the same moment', async () => {
    const { person, device } = await mfa.enrolled()
    const session = await mfa.signIn(person)
    const code = device.wrongCode(now())

    const responses = await Promise.all(Array.from({ length: 30 }, () => session.pass(code)))

    expect(responses.filter((response) => response.body.error.code === 'MFA_INVALID_TOKEN')).toHaveLength(5)
    expect(responses.filter((response) => response.body.error.code === 'UNAUTHORIZED')).toHaveLength(25)
  })

  it('count across a restart', async () => {
    const world = await testController()
    const people = await People.in(world)
    const { person, device } = await new MfaPeople(world, people).enrolled()
    const token = await people.sessionOf(person)
    const before = new MfaSession(world, token)
    for (let at = 0; at < 4; at += 1) await before.pass(device.wrongCode(world.clock.now()))
    await world.stop()

    const again = await testController({ directory: world.directory, clock: world.clock })
    const after = new MfaSession(again, token)

    expect(outcome(await after.pass(device.wrongCode(world.clock.now())))).toEqual(WRONG)
    expect(outcome(await after.pass(device.code(world.clock.now())))).toEqual(ENDED)
    await again.close()
  })
})

describe('the wrong codes of an identity', () => {
  it('are ten in five minutes from any client, then even a correct code waits', async () => {
    const { person, device } = await mfa.enrolled({}, { from: HOME })
    awaitPlainCode(device)

    expect(await guess(person, { from: THIEF, makeCode: wrongTotp(device) })).toBe(10)

    const limited = await (await mfa.signIn(person, { from: THIEF })).pass(device.code(now()))
    expect(outcome(limited)).toEqual(LIMITED)
    expect(Number(limited.headers['retry-after'])).toBe(300)
    world.clock.advance(5 * MINUTE)
    expect(outcome(await (await mfa.signIn(person, { from: THIEF })).pass(device.code(now())))).toBe(200)
  })

  it('count across a restart, which knows the sources of the owner', async () => {
    const world = await testController()
    const people = await People.in(world)
    const { person, device } = await new MfaPeople(world, people).enrolled({}, { from: HOME })
    awaitPlainCode(device, world.clock)
    await guess(
      person,
      { from: THIEF, makeCode: () => device.wrongCode(world.clock.now()) },
      new MfaPeople(world, people),
    )
    await world.stop()

    const again = await testController({ directory: world.directory, clock: world.clock })
    const mfaAgain = new MfaPeople(again, await People.in(again, 'another administrator'))
    const signIn = (from: string) => mfaAgain.signIn(person, { from })

    expect(outcome(await (await signIn(THIEF)).pass(device.code(world.clock.now())))).toEqual(LIMITED)
    expect(outcome(await (await signIn(HOME)).pass(device.code(world.clock.now())))).toBe(200)
    await again.close()
  })

  it('do not keep a client at a source from which the factor was passed before from passing it', async () => {
    const { person, device } = await mfa.enrolled({}, { from: HOME })
    await guess(person, { from: THIEF, makeCode: wrongTotp(device) })
    await guess(person, { from: THIEF, makeCode: wrongRecoveryCodes })

    expect(outcome(await (await mfa.signIn(person, { from: HOME })).pass(device.code(now())))).toBe(200)
  })

  it('do not keep a full session from using its codes', async () => {
    const { person, session, device, recoveryCodes } = await mfa.enrolled({}, { from: HOME })
    await guess(person, { from: THIEF, makeCode: wrongTotp(device) })
    const elsewhere = new MfaSession(world, session.token, { from: '203.0.113.9' })

    expect(outcome(await elsewhere.recoveryCodes(device.code(now())))).toBe(200)
    expect(outcome(await elsewhere.remove(recoveryCodes[0]))).toBe(200)
  })

  it('do not keep recovery codes from passing the factor, from a source that is new', async () => {
    const { person, device, recoveryCodes } = await mfa.enrolled({}, { from: HOME })
    awaitPlainCode(device)
    await guess(person, { from: THIEF, makeCode: wrongTotp(device) })
    // A source uses up its own part of the reserve.
    expect(await guess(person, { from: THIEF, makeCode: wrongRecoveryCodes })).toBe(5)
    const traveler = await mfa.signIn(person, { from: '203.0.113.9' })

    expect(outcome(await traveler.pass(device.code(now())))).toEqual(LIMITED)
    expect(outcome(await traveler.pass(recoveryCodes[0] ?? ''))).toBe(200)
    // The source is known from now on.
    world.clock.advance(STEP_MS)
    const later = await mfa.signIn(person, { from: '203.0.113.9' })
    expect(outcome(await later.pass(device.code(now())))).toBe(200)
  })

  it('make no source known', async () => {
    const { person, device } = await mfa.enrolled({}, { from: HOME })
    await guess(person, { from: THIEF, makeCode: wrongTotp(device) })

    expect(await guess(person, { from: THIEF, makeCode: wrongTotp(device) })).toBe(0)
  })

  it('limit no other identity, and correct codes do not count', async () => {
    const [one, other] = [await mfa.enrolled({}, { from: HOME }), await mfa.enrolled({}, { from: HOME })]
    await guess(one.person, { from: THIEF, makeCode: wrongTotp(one.device) })

    const theirs = await mfa.signIn(other.person, { from: THIEF })
    for (const code of other.recoveryCodes.slice(0, 12)) expect(outcome(await theirs.pass(code))).toBe(200)
  })
})

describe('the sources from which a factor was passed', () => {
  it('are the latest twenty', async () => {
    const { person, recoveryCodes } = await mfa.enrolled({}, { from: HOME })
    const session = await mfa.signIn(person, { from: HOME })
    for (const [at, code] of recoveryCodes.entries())
      await new MfaSession(world, session.token, { from: `10.0.0.${at}` }).pass(code)

    const { knownSources } = await world.controller.store.db
      .selectFrom('mfa_enrollments')
      .select('knownSources')
      .where('identityId', '=', person.id)
      .executeTakeFirstOrThrow()

    expect(JSON.parse(knownSources)).toEqual(Array.from({ length: 20 }, (_, at) => `10.0.0.${at}`))
  })
})

describe('the shares of wrong codes', () => {
  const ANYONE: CodeSender = { source: THIEF, isFullSession: false, isKnownSource: false, isRecoveryCode: false }

  /** Sends wrong codes for a day, as many as are looked at. Returns how many were, and how many are stored at the end. */
  function countGuesses(senders: readonly CodeSender[]): { count: number; size: number } {
    let wrongCodes: readonly WrongCode[] = []
    let count = 0
    for (let at = 0; at < DAY; at += 5 * MINUTE) {
      for (const sender of senders) {
        for (;;) {
          try {
            const share = chooseShare(wrongCodes, sender, at)
            wrongCodes = addWrongCode(wrongCodes, { at, share, source: sender.source })
            count += 1
          } catch {
            break
          }
        }
      }
    }
    return { count, size: wrongCodes.length }
  }

  it('are 2,880 a day for a client that knows the password', () => {
    expect(countGuesses([ANYONE]).count).toBe(2_880)
  })

  it('are 3,000 a day together, from any number of sources, and so is what is stored bounded', () => {
    const sources = Array.from({ length: 12 }, (_, at) => `10.0.0.${at}`)
    const senders = sources.flatMap((source) => [
      { ...ANYONE, source, isRecoveryCode: true },
      { ...ANYONE, source, isKnownSource: true },
      { ...ANYONE, source, isFullSession: true },
    ])

    const { count, size } = countGuesses(senders)

    expect(count).toBe(3_000)
    expect(size).toBeLessThanOrEqual(130)
  })

  it('count over the whole five minutes, and not a millisecond more', () => {
    const at = 1_000_000
    const earlier = Array.from({ length: 10 }, () => ({ at, share: 'any', source: THIEF }) as const)

    expect(() => chooseShare(earlier, ANYONE, at + 5 * MINUTE - 1)).toThrow()
    expect(chooseShare(earlier, ANYONE, at + 5 * MINUTE)).toBe('any')
  })

  it('do not count what a clock has stored that was set back since', () => {
    const earlier = Array.from({ length: 10 }, () => ({ at: 2_000_000, share: 'any', source: THIEF }) as const)

    expect(chooseShare(earlier, ANYONE, 1_000_000)).toBe('any')
  })
})
