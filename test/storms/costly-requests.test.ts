// Requests that are made to cost: bodies that are large or deep, and filters that ask much of every record.
import { Agent } from 'node:https'
import { expect, it } from 'vitest'
import { ADMIN, CLIENT } from '../world/controller.ts'
import { type AttackRequest, sendRepeatedly, sendRequest } from './attackers.ts'
import { expectAllWritten, expectUnharmed, storm } from './storm.ts'
import type { Target } from './target.ts'

const BY_PASSWORD = `${CLIENT}/authenticate?method=password`
const KIB = 1024
const PERSON = { username: 'person', password: ADMIN.password }

/** The headers of the session of an identity that is not an administrator. */
async function signInPerson(target: Target): Promise<Record<string, string>> {
  const person = { name: 'person', type: 'User', isAdmin: false }
  const { id } = (await target.send('POST', '/identities', person)).body.data
  await target.send('POST', '/authenticators', { identityId: id, method: 'updb', ...PERSON })
  const { text } = await sendRequest(target, { path: BY_PASSWORD, body: JSON.stringify(PERSON) })
  return { 'net-session': JSON.parse(text).data.token }
}

const nested = (open: string, close: string, times: number) => open.repeat(times) + close.repeat(times)

/** Bodies that anonymous and signed-in clients can send, up to the limit and beyond it. */
function bodies(session: Record<string, string>): readonly AttackRequest[] {
  const small = 60 * KIB
  const anonymousBodies: readonly string[] = [
    nested('[', ']', small / 2),
    nested('{"a":', '1}', small / 8),
    `{"username":"${'\\u0000'.repeat(small / 6)}"}`,
    `[${'{},'.repeat(small / 3)}{}]`,
    `{${Array.from({ length: small / 12 }, (_, at) => `"k${at}":0`).join()}}`,
    'x'.repeat(16 * KIB * KIB),
  ]
  const signedIn: readonly string[] = [
    nested('[', ']', 500 * KIB),
    `{"tags":{${Array.from({ length: 20_000 }, (_, at) => `"k${at}":"${'v'.repeat(20)}"`).join()}}}`,
    `{"hosting":[${'1e400,'.repeat(100 * KIB)}1]}`,
  ]
  return [
    ...anonymousBodies.map((body) => ({ path: BY_PASSWORD, body })),
    ...signedIn.map((body) => ({ path: `${CLIENT}/sessions`, body, headers: session })),
  ]
}

it('bodies that are large or deep keep no administrator from working', async () => {
  const outcome = await storm('costly bodies', {}, async (target) => {
    const requests = bodies(await signInPerson(target))
    return sendRepeatedly({ concurrency: 30, seconds: 8 }, (count) =>
      sendRequest(target, requests[count % requests.length] as AttackRequest),
    )
  })

  // A connection may be cut while a body that is too large is still on its way.
  expect([0, 400, 401, 413, 429]).toEqual(expect.arrayContaining(Object.keys(outcome.attack).map(Number)))
  expectUnharmed(outcome)
  expectAllWritten(outcome)
})

// As long as the bound on headers lets a filter be.
const FILTER_LENGTH = 10_000

const many = (term: string) => Array(Math.floor(FILTER_LENGTH / encodeURIComponent(` or ${term}`).length)).fill(term)

const filters: readonly string[] = [
  many('name icontains "é"').join(' or '),
  many('not (name contains "zzz")').join(' and '),
  many('tags.a contains "é"').join(' or '),
  many('isEmpty(from services where name icontains "é")').join(' or '),
  many('anyOf(roleAttributes) icontains "é"').join(' or '),
  `createdAt > datetime(${' '.repeat(FILTER_LENGTH / 3)}`,
  `name matches "${'(a+)+'.repeat(FILTER_LENGTH / 20)}"`,
  `${'('.repeat(FILTER_LENGTH / 6)}name = "a"${')'.repeat(FILTER_LENGTH / 6)}`,
  `${'not '.repeat(FILTER_LENGTH / 8)}name = "a"`,
]

const SERVICES = 3_000

async function makeServices(target: Target): Promise<void> {
  let sequence = 0
  const maker = async () => {
    while (sequence < SERVICES) {
      const name = `service ${sequence++} ${'é'.repeat(40)}`
      await target.send('POST', '/services', { name, encryptionRequired: true, roleAttributes: ['everyone'] })
    }
  }
  await Promise.all(Array.from({ length: 8 }, maker))
  const policy = {
    name: 'everything',
    type: 'Dial',
    semantic: 'AnyOf',
    identityRoles: ['#all'],
    serviceRoles: ['#all'],
  }
  await target.send('POST', '/service-policies', policy)
}

it('filters that ask much of thousands of records keep no administrator from working', async () => {
  const outcome = await storm('costly filters', {}, async (target) => {
    await makeServices(target)
    const headers = await signInPerson(target)
    const agent = new Agent({ keepAlive: true })
    const statuses = await sendRepeatedly({ concurrency: 20, seconds: 10 }, (count) => {
      // Each a little different from those before it: nothing that was kept of one helps with another.
      const filter = `${filters[count % filters.length]} limit ${1 + (count % 500)}`
      const path = `${CLIENT}/services?filter=${encodeURIComponent(filter)}`
      return sendRequest(target, { method: 'GET', path, headers, tls: { agent } })
    })
    agent.destroy()
    return statuses
  })

  // A filter that takes too long is 503.
  expect([200, 400, 429, 431, 503]).toEqual(expect.arrayContaining(Object.keys(outcome.attack).map(Number)))
  expectUnharmed(outcome)
  expectAllWritten(outcome)
})
