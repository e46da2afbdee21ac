// The lists of an adopted network, compared member by member with what OpenZiti's controller had responded before.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { CLIENT, MANAGEMENT, TestClock, testController } from '../world/controller.ts'
import { useController } from '../world/use-controller.ts'
import { listDifferences } from './differences.ts'
import { adoptFixture, NETWORK_TIME, type NetworkName, readNetworkJson } from './networks.ts'

// biome-ignore lint/suspicious/noExplicitAny: records of another program
type AnyRecord = Record<string, any>

const folder = mkdtempSync(join(tmpdir(), 'recorded-'))
afterAll(() => rmSync(folder, { recursive: true }))

/** Sessions are not adopted, and the list of controllers is that of the present. */
const PRESENT: ReadonlySet<string> = new Set(['api-sessions', 'sessions', 'controllers'])

/** Members that differ, and why, by the list, or by `*` for every list. */
const DIFFERENT: Readonly<Record<string, string>> = {
  '* hasApiSession': 'sessions are not adopted',
  '* hasEdgeRouterConnection': 'the router has not connected yet',
  '* edgeRouterConnectionStatus': 'the router has not connected yet',
  '* isOnline': 'the router has not connected yet',
  '* syncStatus': 'the router has not connected yet',
  '* hostname': 'the router has not connected yet',
  '* supportedProtocols': 'the router has not connected yet',
  '* versionInfo': 'the router has not connected yet',
  'identities interfaces': 'those of routers are shown with the router',
  'transit-routers interfaces': 'OpenZiti shows them in the list of edge routers alone',
  'transit-routers isVerified': 'OpenZiti shows an edge router that has not enrolled as verified in this list',
  'edge-routers enrollmentCreatedAt': 'OpenZiti shows the year 1',
  'enrollments createdAt': 'OpenZiti shows the year 1',
  'enrollments updatedAt': 'OpenZiti shows the year 1',
  'cas verificationToken': 'the public contract requires a UUID',
  'authenticators certPem': 'only the leaf is stored',
  'posture-check-types version': 'built in',
  'services permissions': 'OpenZiti shows the word Invalid to administrators without a policy',
  'services postureQueries': 'OpenZiti shows a policy that does not exist to administrators without one',
  'external-jwt-signers claimsProperty': 'a pointer to a claim becomes the name of that claim',
  'external-jwt-signers enrollNameClaimsSelector': 'tokens of signers do not enroll here',
  'external-jwt-signers enrollAuthPolicyId': 'tokens of signers do not enroll here',
}

describe.each<NetworkName>(['1.6.5', '1.6.5-three-roots', '2.0.3'])('the network of %s', (name) => {
  const world = useController(async () => {
    const { directory } = await adoptFixture(name, folder)
    const { advertise } = parse(readFileSync(join(directory, 'config.yaml'), 'utf8'))
    return { directory, clock: new TestClock(NETWORK_TIME), settings: { advertise } }
  })
  const { rest } = readNetworkJson<{ rest: Record<string, AnyRecord[]> }>(name, 'rest')
  const dump = readNetworkJson<{ ziti: Record<string, Record<string, AnyRecord>> }>(name, 'dump').ziti
  const lastChanges = new Map(
    Object.values(dump).flatMap((kind) => Object.entries(kind).map(([id, record]) => [id, record.updatedAt?.$time])),
  )
  /** A record that changed after the responses were recorded is compared with the database only, elsewhere. */
  const isOfLater = ({ id, updatedAt }: AnyRecord) => (lastChanges.get(id) ?? '').slice(0, 23) > updatedAt.slice(0, 23)
  let headers: Record<string, string>
  /** The records that a new data directory has. Their times and schemas are its own. */
  let builtIn: ReadonlySet<string>

  beforeAll(async () => {
    const body = { username: 'admin', password: 'admin', configTypes: ['all'] }
    const path = `${CLIENT}/authenticate?method=password`
    const signedIn = await world.send({ method: 'POST', path, body, headers: { 'zt-session': '' } })
    headers = { 'zt-session': signedIn.body.data.token }
    const fresh = await testController()
    const token = await fresh.admin()
    const lists = ['config-types', 'identity-types', 'posture-check-types', 'auth-policies'].map(async (path) => {
      const { body } = await fresh.send({ method: 'GET', path: `${MANAGEMENT}/${path}?limit=500`, token })
      return (body.data as AnyRecord[]).map(({ id }) => id as string)
    })
    builtIn = new Set((await Promise.all(lists)).flat())
    await fresh.close()
  })

  it.each(Object.keys(rest).filter((path) => !PRESENT.has(path)))('lists %s as it did', async (path) => {
    const { body } = await world.send({ method: 'GET', path: `${MANAGEMENT}/${path}?limit=500`, headers })
    const records = new Map((body.data as AnyRecord[]).map((record) => [record.id, record]))
    const isOwn = (id: string, member: string) =>
      ['createdAt', 'updatedAt', 'schema'].includes(member) && builtIn.has(id)
    const differences: string[] = []
    for (const expected of rest[path] ?? []) {
      const actual = records.get(expected.id)
      if (!actual) differences.push(`${expected.id} is missing`)
      else if (!isOfLater(expected))
        for (const [member, value] of Object.entries(expected)) {
          if (`* ${member}` in DIFFERENT || `${path} ${member}` in DIFFERENT || isOwn(expected.id, member)) continue
          // The long schemas of built-in types were cut when they were recorded.
          if (value?.$elided) continue
          differences.push(...listDifferences(value, actual[member], `${expected.id} ${expected.name} ${member}`))
        }
    }
    expect(differences).toEqual([])
  })
})
