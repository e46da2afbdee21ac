// The public keys by which routers of release 2 admit clients: all of them at first, and each change from then on.
import { fromBinary } from '@bufbuild/protobuf'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Message } from '../../server/control-channel/message.ts'
import {
  DataState_Action,
  DataState_ChangeSetSchema,
  DataState_PublicKey_Format,
  DataState_PublicKey_Usage,
} from '../../server/control-channel/messages/edge_pb.ts'
import { computeFingerprint } from '../../src/pki/certificates.ts'
import { registerAuthority, type TestCertificate, verifyAuthority } from '../world/authorities.ts'
import { type TestController, testController } from '../world/controller.ts'
import { People } from '../world/people.ts'
import { enrolledRouter } from '../world/router/enrolled-router.ts'
import { groupedHeaders, SimulatedRouter } from '../world/router/simulated-router.ts'

let world: TestController
let people: People
let address: { url: string; rootPem: string }
const open: SimulatedRouter[] = []

beforeAll(async () => {
  const listeners = [{ address: '127.0.0.1:0', apis: ['client', 'management', 'control'], dialect: 'native' }]
  world = await testController({ settings: { listeners } })
  await world.controller.membership.announce(world.system, {})
  address = await world.listen()
  people = await People.in(world)
})
afterAll(async () => {
  await Promise.all(open.map((router) => router.close()))
  await world.close()
})

let names = 0

/** Connects a new router of release 2; resolves with what it is told before it says anything. */
async function connect(): Promise<{ router: SimulatedRouter; first: Message[] }> {
  const enrolled = await enrolledRouter(world, { name: `router-${++names}` })
  const router = await SimulatedRouter.open({ ...address, ...enrolled })
  open.push(router)
  router.introduce(enrolled.id, groupedHeaders())
  await router.takeReply(router.send(1))
  return { router, first: router.received.splice(0) }
}

/** The keys that a message adds, of clients and of tokens, and those that it removes, by their ids. */
function readKeys({ headers, body }: Message) {
  // With a subscription or an index, routers would look for it in the sequence of changes.
  expect(headers.has(1026)).toBe(false)
  const { changes, index, isSynthetic } = fromBinary(DataState_ChangeSetSchema, body)
  expect({ index, isSynthetic }).toEqual({ index: 0n, isSynthetic: true })
  const keys = changes.map(({ action, isSynthetic, Model }) => {
    expect(isSynthetic).toBe(true)
    if (Model.case !== 'publicKey') throw new Error(`a change of another kind: ${Model.case}`)
    return { action, ...Model.value }
  })
  const created = keys.filter(({ action }) => action === DataState_Action.Create)
  const removed = keys.filter(({ action }) => action === DataState_Action.Delete).map(({ kid }) => kid)
  expect(created.length + removed.length).toBe(keys.length)
  for (const { format } of created) expect(format).toBe(DataState_PublicKey_Format.X509CertDer)
  const pick = (usage: DataState_PublicKey_Usage) => created.filter(({ usages }) => usages.join() === `${usage}`)
  const added = pick(DataState_PublicKey_Usage.ClientX509CertValidation)
  const ofTokens = pick(DataState_PublicKey_Usage.JWTValidation)
  expect(added.length + ofTokens.length).toBe(created.length)
  return { added, ofTokens, removed }
}

const addedIds = (message: Message) => readKeys(message).added.map(({ kid }) => kid)
const idOf = ({ certificate }: TestCertificate) => computeFingerprint({ raw: Buffer.from(certificate.rawData) })
const rootId = () => computeFingerprint(world.controller.authority.root)

describe('a router of release 2', () => {
  it('is told the keys between the response to its hello and its greeting', async () => {
    const { first } = await connect()
    expect(first.slice(0, 3).map(({ type }) => type)).toEqual([2, 20501, 20000])
    const { added, ofTokens, removed } = readKeys(first[1]!)
    const { root } = world.controller.authority
    expect(added.map(({ kid, data }) => [kid, Buffer.from(data)])).toEqual([[rootId(), root.raw]])
    const [ofController] = world.controller.tokenKeys.listCertificates()
    expect(ofTokens.map(({ kid, data }) => [kid, Buffer.from(data)])).toEqual([
      [computeFingerprint(ofController!), ofController!.raw],
    ])
    expect(removed).toEqual([])
  })

  it('is told an authority of an operator once it is verified, and its deletion', async () => {
    const { router } = await connect()
    const authority = await registerAuthority(people, { isVerified: false })
    const unverified = await connect()
    expect(addedIds(unverified.first[1]!)).toEqual([rootId()])
    await verifyAuthority(people, authority)
    const change = readKeys(await router.takeType(20501))
    expect(change.added.map(({ kid, data }) => [kid, Buffer.from(data)])).toEqual([
      [idOf(authority), Buffer.from(authority.certificate.rawData)],
    ])
    expect(change.removed).toEqual([])
    const later = await connect()
    expect(addedIds(later.first[1]!)).toEqual([rootId(), idOf(authority)])
    await people.ask('DELETE', `/cas/${authority.id}`)
    for (const one of [router, later.router])
      expect(readKeys(await one.takeType(20501))).toEqual({ added: [], ofTokens: [], removed: [idOf(authority)] })
  })

  it('is not told a change of an authority that leaves its certificate', async () => {
    const authority = await registerAuthority(people)
    const { router } = await connect()
    await people.ask('PATCH', `/cas/${authority.id}`, { name: 'another name' })
    await router.takeReply(router.send(1))
    expect(router.received.map(({ type }) => type)).not.toContain(20501)
    await people.ask('DELETE', `/cas/${authority.id}`)
  })

  it('is told what changed while no router was connected', async () => {
    await Promise.all(open.splice(0).map((router) => router.close()))
    await expect.poll(() => world.controller.routers.connected.size).toBe(0)
    const authority = await registerAuthority(people)
    const { first } = await connect()
    expect(addedIds(first[1]!)).toEqual([rootId(), idOf(authority)])
    await people.ask('DELETE', `/cas/${authority.id}`)
  })

  it('is told everything again if the controller could not follow a commit', async () => {
    const { router } = await connect()
    await world.controller.store.projections.rebuild('public keys of routers')
    expect(addedIds(await router.takeType(20501))).toEqual([rootId()])
  })

  it('is told a new root, and keeps the one that it replaces while clients have certificates of it', async () => {
    const { router } = await connect()
    const { authority, clock } = world.controller
    const formerId = rootId()
    authority.rotateRoot(['127.0.0.1'], clock.now())
    const change = readKeys(await router.takeType(20501))
    expect(change.added.map(({ kid }) => kid)).toEqual([rootId()])
    expect(change.removed).toEqual([])
    authority.finishRootRotation(clock.now())
    address = { ...address, rootPem: authority.bundlePem }
    const { first } = await connect()
    expect(addedIds(first[1]!).sort()).toEqual([formerId, rootId()].sort())
    await router.takeReply(router.send(1))
    expect(router.received.map(({ type }) => type)).not.toContain(20501)
  })
})
