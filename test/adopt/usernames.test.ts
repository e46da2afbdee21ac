// Usernames of a former network that are shorter or longer than new ones can be.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { adoptNetwork } from '../../src/adopt.ts'
import { HOST, OIDC_SETTINGS, OpenIdClient } from '../openid-connect/client.ts'
import { CLIENT, TestClock } from '../world/controller.ts'
import { useController } from '../world/use-controller.ts'
import { editDatabase } from './edited-database.ts'
import { NETWORK_TIME, readNetworkJson, unpackNetwork } from './networks.ts'

const folder = mkdtempSync(join(tmpdir(), 'usernames-'))
afterAll(() => rmSync(folder, { recursive: true }))

const SHORT = 'ad'
const LONG = 'b'.repeat(120)
const RENAMED: Readonly<Record<string, string>> = { admin: SHORT, bobby: LONG, alice: 'a'.repeat(1001) }

let notes: string[] = []
const world = useController(async () => {
  const { config, database } = unpackNetwork('2.0.3', join(folder, 'former'))
  const { ziti } = readNetworkJson<{ ziti: Record<string, Record<string, { updbUsername?: string }>> }>('2.0.3', 'dump')
  editDatabase(database, (records) => {
    for (const [id, { updbUsername = '' }] of Object.entries(ziti.authenticators ?? {}))
      if (RENAMED[updbUsername]) records.at('authenticators', id).set('updbUsername', RENAMED[updbUsername])
  })
  const directory = join(folder, 'data')
  const clock = new TestClock(NETWORK_TIME)
  const adoption = await adoptNetwork({ directory, configuration: config, env: {}, clock, osUser: 'operator' })
  notes = adoption.report.notes.map(({ kind, problem }) => `${kind}: ${problem}`)
  adoption.complete()
  return { directory, clock, settings: { ...OIDC_SETTINGS, advertise: [HOST] } }
})

it('lets a person with a shorter username than new ones sign in by OpenID Connect', async () => {
  const { access_token: token } = await new OpenIdClient(world).signIn({ username: SHORT, password: 'admin' })
  const headers = { authorization: `Bearer ${token}` }
  const { status } = await world.send({ method: 'GET', path: `${CLIENT}/current-identity`, headers })
  expect(status).toBe(200)
})

it('knows the password of a person with a longer one, who owes a second factor', async () => {
  const client = new OpenIdClient(world)
  const logins = ['Secr3t!pass.', 'Secr3t!pass'].map(async (password) =>
    client.login(await client.begin(), { username: LONG, password }),
  )
  expect((await Promise.all(logins)).map(({ status }) => status)).toEqual([401, 200])
})

it('names a username that is longer than any sign-in accepts', () => {
  const left = notes.filter((note) => note.startsWith('authenticators: '))
  expect(left).toEqual([expect.stringMatching(/username.* 1000 characters.*left out/)])
})
