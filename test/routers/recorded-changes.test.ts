// The sets of changes that OpenZiti's controller 2.0.3 sent routers, as they were recorded: the same changes here are told equally.
//
// Some differences are intended. Routers read nothing of a deleted record but its id. Its controller sends a record also if nothing of
// it changed that routers know (with a sign-in, or another role), and once more before it is deleted; it deletes a revocation that
// another one replaces. Routers take all identities out of a policy that is deleted by themselves. A posture check without versions passes at no router, so that any version is sent as a range.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fromBinary, toJson } from '@bufbuild/protobuf'
import { afterAll, beforeAll, expect, it } from 'vitest'
import {
  DataState_Action,
  DataState_ChangeSetSchema,
  type DataState_Event,
  DataState_EventSchema,
  ServicePolicyRelatedEntityType,
} from '../../server/control-channel/messages/edge_pb.ts'
import { type TestController, testController } from '../world/controller.ts'
import { type Management, managementOf } from '../world/management.ts'
import { People } from '../world/people.ts'
import { enrolledRouter } from '../world/router/enrolled-router.ts'
import { FollowingRouter } from '../world/router/following-router.ts'

interface Recording {
  readonly change: string
  /** The body of the message, in hexadecimal. */
  readonly set: string
}

const FIXTURE = join(import.meta.dirname, '../fixtures/model-change-sets.jsonl')
const LISTENERS = [{ address: '127.0.0.1:0', apis: ['client', 'management', 'control'], dialect: 'openziti' }]

const [head = '', ...lines] = readFileSync(FIXTURE, 'utf8').trim().split('\n')
const recordings = lines.map((line) => JSON.parse(line) as Recording)

let world: TestController
let manage: Management
let router: FollowingRouter
let people: People
let person: Awaited<ReturnType<People['person']>>
const ours: Buffer[] = []

type Fields = Record<string, unknown>

/** Reads sets of one controller, whose ids are told by the names of their records, because each controller chooses its own. */
class Reader {
  readonly #names: Map<string, string>
  readonly #records = new Map<string, string>()

  constructor(names: Readonly<Record<string, string>>) {
    this.#names = new Map(Object.entries(names))
  }

  /** The operations of a set that change anything, in no particular order. */
  read(body: Uint8Array): string[] {
    const { changes } = fromBinary(DataState_ChangeSetSchema, body)
    const operations = changes.flatMap((event) => this.#readEvent(event))
    const deleted = new Set(operations.filter(([action]) => action === 'Delete').map(([, name]) => name))
    const replaced = new Set(operations.filter(([action]) => action === 'Create').map(([, name]) => name))
    const isOfDeletedPolicy = (action: string, name: string, policy?: string) =>
      action === 'Remove' && name.startsWith('RelatedIdentity') && deleted.has(`servicePolicy ${policy}`)
    return operations
      .filter(([action, name]) => action !== 'Update' || !deleted.has(name))
      .filter(([action, name]) => action !== 'Delete' || !replaced.has(name))
      .filter(([action, name, policy]) => !isOfDeletedPolicy(action, name, policy))
      .map((operation) => operation.join(' '))
      .sort()
  }

  #readEvent(event: DataState_Event): [action: string, name: string, fields?: string][] {
    const { action, Model: model } = event
    if (model.case === 'servicePolicyChange') {
      const { policyId, relatedEntityIds, relatedEntityType, add } = model.value
      const kind = ServicePolicyRelatedEntityType[relatedEntityType]
      return relatedEntityIds.map((id) => [add ? 'Add' : 'Remove', `${kind} ${this.#name(id)}`, this.#name(policyId)])
    }
    const kind = model.case as string
    const fields = (toJson(DataState_EventSchema, event) as Record<string, Fields>)[kind] as Fields
    const id = fields.id as string
    if (fields.name !== undefined) this.#names.set(id, fields.name as string)
    const name = `${kind} ${this.#name(id)}`
    if (action === DataState_Action.Delete)
      return this.#records.delete(name) || kind === 'revocation' ? [['Delete', name]] : []
    const text = this.#describe(kind === 'revocation' ? readRevocation(fields) : fields)
    if (this.#records.get(name) === text && kind !== 'revocation') return []
    this.#records.set(name, text)
    return [[DataState_Action[action] as string, name, text]]
  }

  #name(id: string): string {
    return this.#names.get(id) ?? id
  }

  /** Renders fields as JSON, in the order of their names. */
  #describe(value: unknown): string {
    if (typeof value === 'string') return JSON.stringify(value.startsWith('{') ? JSON.parse(value) : this.#name(value))
    if (Array.isArray(value)) return `[${value.map((each) => this.#describe(each)).join()}]`
    if (typeof value !== 'object' || value === null) return JSON.stringify(value)
    const members = Object.entries(value).map(([name, member]) => `${this.#name(name)}:${this.#describe(member)}`)
    return `{${members.sort().join()}}`
  }
}

/** A revocation, with its times by the moment at which it was made. */
function readRevocation({ id, type, issuedBefore, ExpiresAt }: Fields): Fields {
  const seconds = (time: unknown) => Math.floor(Date.parse(time as string) / 1000)
  return { id, type, lifetime: seconds(ExpiresAt) - seconds(issuedBefore) }
}

const recorded = new Reader(JSON.parse(head).names)
let here: Reader

beforeAll(async () => {
  world = await testController({ settings: { listeners: LISTENERS } })
  await world.controller.membership.announce(world.system, {})
  const address = await world.listen()
  manage = await managementOf(world)
  const enrolled = await enrolledRouter(world, { name: 'r1' })
  router = await FollowingRouter.connect(address, enrolled)
  people = await People.in(world)
  person = await people.person({ name: 'person' })
  const { wire } = router
  const takeAtOnce = wire.takeAtOnce
  wire.takeAtOnce = (message) => {
    if (message.type === 20501 && message.headers.has(1026)) ours.push(message.body)
    return takeAtOnce(message)
  }
  const types = (await manage.get('/config-types?limit=100')) as { id: string; name: string }[]
  for (const { id, name } of types) ids.set(name, id)
  await make('configs', 'h1', { configTypeId: getId('host.v1'), data: TARGET })
  here = new Reader({ ...Object.fromEntries(types.map(({ id, name }) => [id, name])), [getId('h1')]: 'h1' })
  router.subscribe()
  await catchUp()
})
afterAll(async () => {
  await router.wire.close()
  await world.close()
})

const catchUp = () => router.reach(world.controller.routers.model.index)

const ids = new Map<string, string>()
const getId = (name: string) => ids.get(name) as string

async function make(path: string, name: string, values: object): Promise<void> {
  ids.set(name, await manage.make(path, { name, ...values }))
}
const patch = (path: string, name: string, values: object) => manage.change('PATCH', `/${path}/${getId(name)}`, values)
const remove = (path: string, name: string) => manage.change('DELETE', `/${path}/${getId(name)}`)
const makePolicy = (name: string, type: 'Dial' | 'Bind', identityRole: string, serviceRoles: string[]) =>
  make('service-policies', name, { type, semantic: 'AnyOf', identityRoles: [identityRole], serviceRoles })
const makeIdentity = (name: string, roleAttributes: string[]) =>
  make('identities', name, { type: 'Device', isAdmin: false, roleAttributes })

const TARGET = { address: '127.0.0.1', port: 21_490, protocol: 'tcp' }
const LINUX = [{ type: 'Linux', versions: ['>=1.0.0'] }]
const WEB = ['#web']

const ANY_VERSION = ['{OsType:"Linux"}', '{OsType:"Linux",OsVersions:[">=0.0.0"]}'] as const

/** The same changes here. */
const CHANGES: Readonly<Record<string, () => Promise<unknown>>> = {
  'a service is created with a config': () =>
    make('services', 'svc1', { configs: [getId('h1')], encryptionRequired: true, roleAttributes: ['web'] }),
  'a policy to host is created': () => makePolicy('bind1', 'Bind', '#hosts', WEB),
  'a policy to dial is created': () => makePolicy('dial1', 'Dial', '#clients', WEB),
  'an identity is created that a policy to host selects': () => makeIdentity('host', ['hosts']),
  'an identity is created that a policy to dial selects': () => makeIdentity('client', ['clients']),
  'an identity signs in': () => people.sessionOf(person),
  'a policy to dial is deleted': () => remove('service-policies', 'dial1'),
  'the policy to dial is created again': () => makePolicy('dial1', 'Dial', '#clients', WEB),
  'a policy to host is deleted': () => remove('service-policies', 'bind1'),
  'the policy to host is created again': () => makePolicy('bind1', 'Bind', '#hosts', WEB),
  'an identity is disabled': () =>
    manage.change('POST', `/identities/${getId('client')}/disable`, { durationMinutes: 0 }),
  'the identity is enabled': () => manage.change('POST', `/identities/${getId('client')}/enable`),
  'a config is created': () =>
    make('configs', 'h2', { configTypeId: getId('host.v1'), data: { ...TARGET, port: 21_491 } }),
  'an identity gets another hosting cost and data for apps': () =>
    patch('identities', 'host', { defaultHostingCost: 10, appData: { k: 'v' } }),
  'an identity gets a config in place of that of a service': () =>
    manage.change('POST', `/identities/${getId('host')}/service-configs`, [
      { serviceId: getId('svc1'), configId: getId('h2') },
    ]),
  'a config gets other data': () => patch('configs', 'h1', { data: { ...TARGET, port: 21_491 } }),
  'a service gets a role that no policy names': () => patch('services', 'svc1', { roleAttributes: ['web', 'other'] }),
  'a service is created that no policy selects': () =>
    make('services', 'svc2', { configs: [getId('h1')], encryptionRequired: false }),
  'an identity gets a role that no policy names': () =>
    patch('identities', 'client', { roleAttributes: ['clients', 'other'] }),
  'a policy selects one more service': () =>
    patch('service-policies', 'dial1', { serviceRoles: [...WEB, `@${getId('svc2')}`] }),
  'a service is created that two policies select': () =>
    make('services', 'svc3', { encryptionRequired: true, roleAttributes: ['web'] }),
  'a service is renamed': () => patch('services', 'svc2', { name: 'svc2b' }),
  'a posture check is created': () =>
    make('posture-checks', 'pc1', { typeId: 'OS', operatingSystems: [{ type: 'Windows', versions: ['>=10.0.0'] }] }),
  'a policy requires the posture check': () =>
    patch('service-policies', 'dial1', { postureCheckRoles: [`@${getId('pc1')}`] }),
  'a posture check demands something else': () =>
    patch('posture-checks', 'pc1', { typeId: 'OS', operatingSystems: LINUX }),
  'a posture check demands any version': () =>
    patch('posture-checks', 'pc1', { typeId: 'OS', operatingSystems: [{ type: 'Linux', versions: [] }] }),
  'a policy requires the posture check no more': () => patch('service-policies', 'dial1', { postureCheckRoles: [] }),
  'a posture check is deleted': () => remove('posture-checks', 'pc1'),
  'a router that tunnels is created': () => make('edge-routers', 'r3', { isTunnelerEnabled: true }),
  'a policy names the router': () => makePolicy('bindr', 'Bind', `@${getId('r3')}`, [`@${getId('svc1')}`]),
  'the policy of the router is deleted': () => remove('service-policies', 'bindr'),
  'one more identity is created that a policy selects': () => makeIdentity('lclient', ['clients']),
  'a policy with two identities and services is deleted': () => remove('service-policies', 'dial1'),
  'the policy with two identities and services is created again': () => makePolicy('dial1', 'Dial', '#clients', WEB),
  'an identity is deleted that was revoked before': () => remove('identities', 'client'),
  'a service is deleted that two policies select': async () => {
    // It was renamed before, which was told by the whole model.
    await patch('services', 'svc3', { name: 'svc3b' })
    await catchUp()
    for (const body of ours.splice(0)) here.read(body)
    await remove('services', 'svc3')
  },
  'a config type is created': () => make('config-types', 'ctx', {}),
  'a config type is deleted': () => remove('config-types', 'ctx'),
}

it('routers receive the same operations for each change as in the recording', async () => {
  expect(Object.keys(CHANGES)).toEqual(recordings.map(({ change }) => change))
  for (const { change, set } of recordings) {
    ours.length = 0
    await CHANGES[change]?.()
    await catchUp()
    const expected = recorded.read(Buffer.from(set, 'hex')).map((operation) => operation.replace(...ANY_VERSION))
    expect([change, ours.flatMap((body) => here.read(body))]).toEqual([change, expected])
  }
  expect(router.replica.faults).toEqual([])
})
