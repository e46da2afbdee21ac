// The first router of release 2 comes while a network is in use, clocks are set, and keys change.
import { fromBinary } from '@bufbuild/protobuf'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { DataState_ChangeSetSchema } from '../../server/control-channel/messages/edge_pb.ts'
import { CLIENT } from '../world/controller.ts'
import { type TestClient, TestNetwork } from '../world/router/network.ts'

const DAY = 24 * 60 * 60_000
const YEAR = 365 * DAY

let network: TestNetwork

beforeEach(async () => {
  network = await TestNetwork.start({ settings: { 'session.timeout': '10000h' } })
})
afterEach(async () => {
  await network.close()
})

const isSigned = (token: string) => token.split('.').length === 3
/** Asks for the session of a client again. Returns its token. */
async function askAgain(client: TestClient, serviceId: string, type = 'Dial'): Promise<string> {
  const { apiSessionToken: token } = client
  const { body } = await network.world.send({
    ...{ method: 'POST', path: `${CLIENT}/sessions`, token, body: { serviceId, type } },
  })
  return body.data.token
}

describe('when the first router of release 2 connects', () => {
  it('clients that sign in, dial and are deleted at that moment notice nothing', async () => {
    const router = await network.router()
    const serviceId = await network.service()
    await network.terminator(serviceId, router)
    const clients = await Promise.all(Array.from({ length: 12 }, () => network.client(serviceId)))
    const [kept, ended] = [clients.slice(0, 6), clients.slice(6)]
    const connecting = network.router(2)
    const work = await Promise.all([
      ...kept.map((client) => router.dial(client)),
      ...kept.map(async (client) => router.dial({ ...client, token: await askAgain(client, serviceId) })),
      ...Array.from({ length: 6 }, async () => router.dial(await network.client(serviceId))),
      ...ended.map(async ({ sessionId }) => {
        await network.manage.change('DELETE', `/sessions/${sessionId}`)
        return { type: 20219 }
      }),
    ])
    await connecting
    expect(work.map(({ type }) => type)).toEqual(work.map(() => 20219))
    for (const client of kept) {
      const token = await askAgain(client, serviceId)
      expect(isSigned(token)).toBe(true)
      // Whichever token its client has, at whichever router.
      for (const each of [token, client.token]) expect((await router.dial({ ...client, token: each })).type).toBe(20219)
    }
    for (const client of ended) expect(await router.dial(client)).toMatchObject({ type: 20002, code: 3 })
  })

  it('all who come at once find one key, and one moment of the change', async () => {
    const routers = await Promise.all([1, 2, 3, 4].map(() => network.router(2)))
    const { db } = network.world.controller.store
    expect(await db.selectFrom('token_keys').select('id').execute()).toHaveLength(1)
    const serviceId = await network.service()
    await network.terminator(serviceId, routers[0]!)
    const client = await network.client(serviceId)
    expect((await routers[0]!.dial(client)).type).toBe(20219)
  })
})

describe('a client of a network with routers of release 2', () => {
  it.each([
    ['back', -YEAR],
    ['forward', DAY],
  ])('dials by its token after the clock was set %s, and by the next one', async (_way, step) => {
    const router = await network.router(2)
    const serviceId = await network.service()
    await network.terminator(serviceId, router)
    const client = await network.client(serviceId)
    network.world.clock.set(step)
    expect((await router.dial(client)).type).toBe(20219)
    const token = await askAgain(client, serviceId)
    expect((await router.dial({ ...client, token })).type).toBe(20219)
  })

  it('dials by tokens of either key after a rotation that its router was away for', async () => {
    const { controller, clock, system } = network.world
    const router = await network.router(2)
    const serviceId = await network.service()
    await network.terminator(serviceId, router)
    const former = await network.client(serviceId)
    await router.wire.close()
    for (const ms of [89 * DAY, DAY]) {
      clock.advance(ms)
      await controller.tokenKeys.renewDue(system)
    }
    const latter = await network.client(serviceId)
    const back = await network.reconnect(router.id, undefined, 2)
    const keys = back.wire.received.filter(({ type }) => type === 20501)
    const kids = keys.flatMap(({ body }) =>
      fromBinary(DataState_ChangeSetSchema, body).changes.flatMap(({ Model: model }) =>
        model.case === 'publicKey' ? [model.value.kid] : [],
      ),
    )
    const kidOf = ({ token }: TestClient) => JSON.parse(Buffer.from(token.split('.')[0]!, 'base64url').toString()).kid
    expect(kidOf(former)).not.toBe(kidOf(latter))
    expect(kids).toEqual(expect.arrayContaining([kidOf(former), kidOf(latter)]))
    for (const client of [former, latter]) expect((await back.dial(client)).type).toBe(20219)
  })
})
