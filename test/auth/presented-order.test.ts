// The order in which a client sends the certificates above its own: any leads to its authority, whatever Node.js gives of them.
import { beforeAll, describe, expect, it } from 'vitest'
import { COMMON_NAME_CLAIM, issue, registerAuthority, type TestCertificate } from '../world/authorities.ts'
import { callOverTls } from '../world/certificates.ts'
import { CLIENT } from '../world/controller.ts'
import { newName } from '../world/names.ts'
import { People } from '../world/people.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
let at: { url: string; rootPem: string }
let people: People

beforeAll(async () => {
  at = await world.listen()
  people = await People.in(world)
})

/** Three intermediates below an authority, the highest first, and a client below the lowest. */
async function makeChain(values: object = {}) {
  const root = await registerAuthority(people, { ...values })
  const top = await issue('CN=top', root, { isAuthority: true })
  const middle = await issue('CN=middle', top, { isAuthority: true })
  const bottom = await issue('CN=bottom', middle, { isAuthority: true })
  const name = newName('client')
  return { root, top, middle, bottom, name, leaf: await issue(`CN=${name}`, bottom) }
}

const ORDERS = ['tmb', 'tbm', 'mtb', 'mbt', 'btm', 'bmt'] as const

type Chain = Awaited<ReturnType<typeof makeChain>>

function sendIn(order: string, { top, middle, bottom, leaf }: Chain, path: string, maxVersion: 'TLSv1.2' | 'TLSv1.3') {
  const byLetter: Readonly<Record<string, TestCertificate>> = { t: top, m: middle, b: bottom }
  const cert = leaf.pem + [...order].map((letter) => byLetter[letter]?.pem).join('')
  const call = { method: 'POST', path: CLIENT + path, cert, key: leaf.keyPem, body: {}, maxVersion }
  return callOverTls(at.url, at.rootPem, call)
}

describe.each(['TLSv1.2', 'TLSv1.3'] as const)('over %s', (version) => {
  it.each(ORDERS)('a client enrolls that sends its intermediates in the order %s, and signs in', async (order) => {
    const chain = await makeChain()

    const enrollment = await sendIn(order, chain, '/enroll?method=ca', version)
    const signIn = await sendIn(order, chain, '/authenticate?method=cert', version)

    expect([enrollment.status, signIn.status]).toEqual([200, 200])
  })

  it.each(ORDERS)('an identity is found by a certificate whose intermediates come in the order %s', async (order) => {
    const chain = await makeChain({ externalIdClaim: COMMON_NAME_CLAIM })
    const id = await people.identity({ externalId: chain.name })

    const { body } = await sendIn(order, chain, '/authenticate?method=cert', version)

    expect(body.data?.identityId).toBe(id)
  })

  it.each(ORDERS)('a token is redeemed with intermediates in the order %s', async (order) => {
    const chain = await makeChain()
    const id = await people.identity({ enrollment: { ottca: chain.root.id } })
    const { token } = (await people.manage('GET', `/identities/${id}`)).enrollment.ottca

    expect((await sendIn(order, chain, `/enroll?method=ottca&token=${token}`, version)).status).toBe(200)
  })

  it('a client signs in by another order after a restart', async () => {
    const chain = await makeChain()
    const identityId = await people.identity({ enrollment: { ottca: chain.root.id } })
    const { token } = (await people.manage('GET', `/identities/${identityId}`)).enrollment.ottca
    await sendIn('bmt', chain, `/enroll?method=ottca&token=${token}`, version)
    await world.stop()
    await world.reopen()
    at = await world.listen()

    expect((await sendIn('tmb', chain, '/authenticate?method=cert', version)).status).toBe(200)
  })
})

it('a client whose intermediate is missing does not enroll', async () => {
  const chain = await makeChain()

  expect((await sendIn('mb', chain, '/enroll?method=ca', 'TLSv1.3')).status).toBe(400)
})
