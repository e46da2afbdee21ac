// Sign-ins by the thousand: guessed passwords, certificates that are costly to check, and a device that signs in without end.
import { expect, it } from 'vitest'
import { clientKey } from '../world/certificates.ts'
import { ADMIN, CLIENT } from '../world/controller.ts'
import { loopbackAddress, type Statuses, sendRepeatedly, sendRequest } from './attackers.ts'
import { bagBesideDevice, bagOfStranger } from './certificate-bags.ts'
import { expectAllWritten, expectUnharmed, storm } from './storm.ts'
import type { Target } from './target.ts'

const BY_PASSWORD = `${CLIENT}/authenticate?method=password`
const BY_CERTIFICATE = `${CLIENT}/authenticate?method=cert`

const guess = (count: number) => JSON.stringify({ username: `user ${count % 50}`, password: `guess ${count}` })

/** Guesses from some addresses, and the statuses that sign-ins with the right password from another one have meanwhile. */
async function guessFrom(target: Target, sources: number): Promise<{ guesses: Statuses; rightPassword: Statuses }> {
  const seconds = 8
  const [guesses, rightPassword] = await Promise.all([
    sendRepeatedly({ concurrency: 200, seconds }, (count) =>
      sendRequest(target, { path: BY_PASSWORD, body: guess(count), from: loopbackAddress(count % sources) }),
    ),
    sendRepeatedly({ concurrency: 1, seconds }, () =>
      sendRequest(target, { path: BY_PASSWORD, body: JSON.stringify(ADMIN), from: '127.0.200.1' }),
    ),
  ])
  return { guesses, rightPassword }
}

/** The statuses, without counts, in order. */
const statusCodes = (statuses: Statuses) => Object.keys(statuses).map(Number)

const REFUSED = [401, 429]

it.each([
  ['one address', 1],
  ['sixty addresses', 60],
])('guesses at passwords from %s do not keep their owner from signing in', async (addresses, sources) => {
  // The right password is sent more often than one identity may by default.
  const env = { CONTROLLER_LIMITS_SIGN_INS_PER_IDENTITY: '1000' }

  const { attack, ...outcome } = await storm(`guesses from ${addresses}`, { env }, (target) =>
    guessFrom(target, sources),
  )

  expect(REFUSED).toEqual(expect.arrayContaining(statusCodes(attack.guesses)))
  expect(attack.rightPassword[200]).toBeGreaterThan(0)
  if (sources === 1) expect(statusCodes(attack.rightPassword)).toEqual([200])
  expectUnharmed({ attack, ...outcome })
  expectAllWritten({ attack, ...outcome })
})

/** A device of its own that has enrolled, with its certificate and what stands above it. */
async function enrollDevice(target: Target): Promise<{ id: string; cert: string; key: string }> {
  const body = { name: 'device', type: 'Device', isAdmin: false, enrollment: { ott: true } }
  const { id } = (await target.send('POST', '/identities', body)).body.data
  const { enrollment } = (await target.send('GET', `/identities/${id}`)).body.data
  const { csr, keyPem } = await clientKey('device')
  const response = await sendRequest(target, {
    path: `${CLIENT}/enroll?method=ott&token=${enrollment.ott.token}`,
    body: csr,
    headers: { 'content-type': 'application/x-pem-file' },
  })
  return { id, cert: JSON.parse(response.text).data.cert, key: keyPem }
}

it('bags of certificates with keys of any size keep no administrator from working', async () => {
  const outcome = await storm('bags of certificates', {}, async (target) => {
    const device = await enrollDevice(target)
    const bags = [bagOfStranger(target.directory), bagBesideDevice(target.directory, device)]
    return sendRepeatedly({ concurrency: 20, seconds: 8 }, (count) =>
      sendRequest(target, { path: BY_CERTIFICATE, body: '{}', tls: { ...bags[count % 2], agent: false } }),
    )
  })

  // The device in the midst of its bag may get in.
  expect([200, ...REFUSED]).toEqual(expect.arrayContaining(statusCodes(outcome.attack)))
  expectUnharmed(outcome)
  expectAllWritten(outcome)
})

it('a device that signs in without end has a bounded number of sessions', async () => {
  const outcome = await storm('sign-ins by certificate', {}, async (target) => {
    const { id, ...tls } = await enrollDevice(target)
    const statuses = await sendRepeatedly({ concurrency: 20, seconds: 8 }, () =>
      sendRequest(target, { path: BY_CERTIFICATE, body: '{}', tls: { ...tls, agent: false } }),
    )
    const filter = encodeURIComponent(`identity="${id}"`)
    const { body } = await target.send('GET', `/api-sessions?limit=1&filter=${filter}`)
    return { statuses, sessions: body.meta.pagination.totalCount as number }
  })

  expect([200, 429]).toEqual(expect.arrayContaining(statusCodes(outcome.attack.statuses)))
  expect(outcome.attack.sessions).toBeLessThanOrEqual(500)
  expectUnharmed(outcome)
  expectAllWritten(outcome)
})
