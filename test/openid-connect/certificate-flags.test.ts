// The parts of tokens and sessions by which a client knows that it shall renew its certificate, or presents it without its issuer.
import { beforeAll, describe, expect, it } from 'vitest'
import { callOverTls, clientKey } from '../world/certificates.ts'
import { CLIENT } from '../world/controller.ts'
import { People } from '../world/people.ts'
import { useController } from '../world/use-controller.ts'
import { CertificateClient, type Holder, holderOf } from './certificate-client.ts'
import { bearer, OIDC_SETTINGS, readClaims, type Tokens } from './client.ts'

const world = useController({ settings: OIDC_SETTINGS })
let at: { url: string; rootPem: string }
let client: CertificateClient
let people: People

beforeAll(async () => {
  at = await world.listen()
  client = new CertificateClient(world, at)
  people = await People.in(world)
})

const signIn = async (holder: Holder) => (await client.signIn(holder, '/oidc/login/cert')).body as Tokens

const call = async (holder: Holder, { access_token: token }: Tokens, method: string, path: string, body?: object) =>
  (
    await callOverTls(at.url, at.rootPem, {
      method,
      path: CLIENT + path,
      headers: bearer(token),
      ...holder,
      ...(body ? { body } : {}),
    })
  ).body.data

const showSession = (holder: Holder, tokens: Tokens) => call(holder, tokens, 'GET', '/current-api-session')

describe('a certificate that an administrator wants renewed', () => {
  it('is renewed in a session by its access token, and no token asks for it any more', async () => {
    const device = await people.device()
    const holder = holderOf(device)
    const before = await signIn(holder)
    await people.manage('POST', `/authenticators/${device.authenticatorId}/request-extend`, { rollKeys: true })

    const tokens = await signIn(holder)
    const askedSession = await showSession(holder, tokens)
    const { csr, keyPem } = await clientKey('renewed')
    const path = `/current-identity/authenticators/${device.authenticatorId}/extend`
    const { clientCert } = await call(holder, tokens, 'POST', path, { clientCertCsr: csr })
    await call(holder, tokens, 'POST', `${path}-verify`, { clientCert })
    const renewed = { cert: clientCert, key: keyPem }
    const next = await signIn(renewed)

    const flagsOf = ({ access_token }: Tokens) => {
      const { z_cer, z_ckrr } = readClaims(access_token)
      return [z_cer, z_ckrr]
    }
    expect([flagsOf(before), flagsOf(tokens), flagsOf(next)]).toEqual([
      [false, false],
      [true, true],
      [false, false],
    ])
    expect(askedSession).toMatchObject({
      isCertExtendRequested: true,
      isCertKeyRollRequested: true,
      isCertExtendable: true,
    })
    for (const session of [await showSession(holder, tokens), await showSession(renewed, next)])
      expect(session).toMatchObject({ isCertExtendRequested: false, isCertKeyRollRequested: false })
    const { id } = await client.begin(holder)
    expect((await client.call(holder, 'POST', '/oidc/login/cert', { id })).status).toBe(401)
  })
})

describe('a certificate without its issuer', () => {
  it('is told apart in the tokens and in the session', async () => {
    const device = await people.device()
    const { cert = '', key = '' } = holderOf(device) ?? {}
    const [own = ''] = cert.split(/(?<=-----END CERTIFICATE-----\n)/)

    for (const [holder, isImproper] of [
      [{ cert: own, key }, true],
      [{ cert, key }, false],
    ] as const) {
      const tokens = await signIn(holder)
      expect(readClaims(tokens.access_token).z_iccc).toBe(isImproper)
      expect(await showSession(holder, tokens)).toMatchObject({ improperClientCertChain: isImproper })
    }
  })
})
