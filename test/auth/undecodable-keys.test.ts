// Certificates whose public key is a point that is not on its curve: wherever one is sent, it is a mistake of the client.
import { X509Certificate } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import { buildChain } from '../../src/pki/chains.ts'
import { parsePemBlocks } from '../../src/pki/pem.ts'
import { issue, makeAuthority, registerAuthority, withUndecodableKey } from '../world/authorities.ts'
import { People } from '../world/people.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
let people: People

beforeAll(async () => {
  people = await People.in(world)
})

const outcome = ({ status, body }: { status: number; body: { error?: { code: string } } }) => [status, body.error?.code]
const authorityBody = (certPem: string) => ({
  name: 'undecodable',
  certPem,
  identityRoles: [],
  isAuthEnabled: true,
  isOttCaEnrollmentEnabled: true,
  isAutoCaEnrollmentEnabled: true,
})

describe('a certificate with an undecodable key', () => {
  it('is refused as an authority', async () => {
    const authority = await makeAuthority()

    const response = await people.ask('POST', '/cas', authorityBody(withUndecodableKey(authority, authority)))

    expect(outcome(response)).toEqual([400, 'COULD_NOT_VALIDATE'])
    expect(response.body.error.cause).toMatchObject({ field: 'certPem', reason: expect.stringMatching(/decoded/) })
  })

  it('is refused as an intermediate that comes with an authority', async () => {
    const authority = await makeAuthority()
    const intermediate = await issue('CN=intermediate', authority, { isAuthority: true })
    const certPem = authority.pem + withUndecodableKey(intermediate, authority)

    const response = await people.ask('POST', '/cas', authorityBody(certPem))

    expect(outcome(response)).toEqual([400, 'COULD_NOT_VALIDATE'])
    expect(response.body.error.cause.reason).toMatch(/certificate 2, .*decoded/)
  })

  it('proves nothing about the key of an authority', async () => {
    const authority = await registerAuthority(people, { isVerified: false })
    const { verificationToken } = await people.manage('GET', `/cas/${authority.id}`)
    const proof = await issue(`CN=${verificationToken}`, authority)

    const response = await people.askText('POST', `/cas/${authority.id}/verify`, withUndecodableKey(proof, authority))

    expect(outcome(response)).toEqual([400, 'CERTIFICATE_FAILED_VALIDATION'])
  })

  it('is refused as the credential of an identity', async () => {
    const authority = await registerAuthority(people)
    const leaf = await issue('CN=device', authority)
    const body = { identityId: await people.identity(), method: 'cert', certPem: withUndecodableKey(leaf, authority) }

    expect(outcome(await people.ask('POST', '/authenticators', body))).toEqual([400, 'CERTIFICATE_FAILED_VALIDATION'])
  })

  it('is refused as that of a signer', async () => {
    const issuer = await makeAuthority()
    const certPem = withUndecodableKey(issuer, issuer)
    const values = { name: 'undecodable', issuer: 'https://undecodable.test', audience: 'here', enabled: true }

    const response = await people.ask('POST', '/external-jwt-signers', { ...values, certPem, kid: 'one' })

    expect(outcome(response)).toEqual([400, 'COULD_NOT_VALIDATE'])
  })

  it('leads to nothing from wherever it comes into a chain', async () => {
    const root = await makeAuthority('CN=root')
    const intermediate = await issue('CN=intermediate', root, { isAuthority: true })
    const leaf = await issue('CN=leaf', intermediate)
    const parse = (pem: string) => new X509Certificate(parsePemBlocks(pem)[0]?.bytes as Buffer)
    const good = [leaf.pem, intermediate.pem, root.pem].map(parse) as [
      X509Certificate,
      X509Certificate,
      X509Certificate,
    ]
    const bad = [
      withUndecodableKey(leaf, intermediate),
      withUndecodableKey(intermediate, root),
      withUndecodableKey(root, root),
    ].map(parse)
    const now = world.clock.now()

    expect(buildChain(good[0], [good[1]], [good[2]], { now })).toHaveLength(3)
    for (const [at, each] of bad.entries()) {
      const [one, two, three] = good.with(at, each) as [X509Certificate, X509Certificate, X509Certificate]
      expect(buildChain(one, [two], [three], { now })).toBeUndefined()
    }
  })
})
