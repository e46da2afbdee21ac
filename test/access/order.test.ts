// The order of what memory holds does not depend on its history: a controller shows the same before and after a restart.
import { beforeEach, expect, it } from 'vitest'
import { CLIENT, MANAGEMENT } from '../world/controller.ts'
import { Issuer } from '../world/issuers.ts'
import { People } from '../world/people.ts'
import { useControllerPerTest } from '../world/use-controller.ts'

const world = useControllerPerTest()
let people: People

beforeEach(async () => {
  people = await People.in(world)
})

const make = async (plural: string, body: object) => (await people.manage('POST', `/${plural}`, body)).id as string

/** Makes three records; then deletes the first one, changes the second one and makes a fourth one. */
async function withHistory(plural: string, toBody: (name: string) => object): Promise<void> {
  const ids: string[] = []
  for (const name of ['a', 'b', 'c']) ids.push(await make(plural, { name, ...toBody(name) }))
  await people.manage('DELETE', `/${plural}/${ids[0]}`)
  await people.manage('PATCH', `/${plural}/${ids[1]}`, { name: 'renamed' })
  await make(plural, { name: 'd', ...toBody('d') })
}

it.each([
  ['a client sees of the posture checks of its services', 'service'],
  ['advice says of the routers that an identity and a service have in common', 'policy-advice'],
  ['the overview of an identity says of policies with posture checks', 'posture'],
  ['advice says of the signers whose tokens an identity may bring', 'advise'],
  ['a session shows of the policies that grant it', 'session'],
])('a restart changes nothing of what %s', async (_what, subject) => {
  const all = { semantic: 'AnyOf', identityRoles: ['#all'], serviceRoles: ['#all'] }
  const service = await make('services', { name: 'web', encryptionRequired: true })
  const identity = await people.identity({ externalId: 'subject' })
  const { token } = await world.signInAgain(identity)
  await withHistory('posture-checks', () => ({
    typeId: 'DOMAIN',
    domains: ['corp.example'],
    roleAttributes: ['checked'],
  }))
  await withHistory('service-policies', () => ({ type: 'Dial', ...all, postureCheckRoles: ['#checked'] }))
  await withHistory('edge-routers', () => ({}))
  await withHistory('external-jwt-signers', () => new Issuer().signerBody())
  await make('edge-router-policies', {
    name: 'r',
    semantic: 'AnyOf',
    identityRoles: ['#all'],
    edgeRouterRoles: ['#all'],
  })
  const serviceRouters = { semantic: 'AnyOf', serviceRoles: ['#all'], edgeRouterRoles: ['#all'] }
  await make('service-edge-router-policies', { name: 's', ...serviceRouters })
  const report = { id: 'any', typeId: 'DOMAIN', domain: 'corp.example' }
  await world.send({ method: 'POST', path: `${CLIENT}/posture-response`, token, body: report })
  const dial = { serviceId: service, type: 'Dial' }
  const session = await world.send({ method: 'POST', path: `${CLIENT}/sessions`, token, body: dial })
  const paths: Readonly<Record<string, string>> = {
    service: `${CLIENT}/services/${service}`,
    'policy-advice': `${MANAGEMENT}/identities/${identity}/policy-advice/${service}`,
    posture: `${MANAGEMENT}/controller/posture/identities/${identity}`,
    session: `${MANAGEMENT}/sessions/${session.body.data?.id}`,
    advise: `${MANAGEMENT}/controller/policy/advise/${identity}/${service}`,
  }
  const path = paths[subject] ?? ''
  const read = () => world.send({ method: 'GET', path, token: subject === 'service' ? token : people.token })
  const before = await read()
  await world.stop()
  await world.reopen()

  expect(before.status).toBe(200)
  expect((await read()).body).toEqual(before.body)
})
