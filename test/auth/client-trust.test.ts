// The authorities that vouch for a client certificate: at a sign-in, at an enrollment, and for the controller's own certificates.
import { X509Certificate } from 'node:crypto'
import { beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { toNameKey } from '../../src/authentication/authorities/authority-certificates.ts'
import type {
  CertificateAuthority,
  RegisteredAuthority,
} from '../../src/authentication/authorities/registered-authority.ts'
import { type AuthenticatorMatch, NO_CERTIFICATE } from '../../src/authentication/sign-in/authentication-methods.ts'
import { ClientTrustStore } from '../../src/authentication/sign-in/client-trust.ts'
import { toCertificatePem } from '../../src/pki/certificates.ts'
import { type Change, toChange } from '../../src/storage/transactions/changes.ts'
import { extensions, forgeCertificate, type KeyPair, newKeyPair, PURPOSES } from '../world/forged-certificates.ts'

const DAY = 24 * 60 * 60_000
const NOW = Date.UTC(2026, 5, 1)
const [NOT_BEFORE, NOT_AFTER] = [NOW - 10 * DAY, NOW + 10 * DAY]

/** A certificate with its keys. */
interface Node extends KeyPair {
  readonly name: string
  readonly certificate: X509Certificate
}

interface Words {
  readonly isAuthority?: boolean
  readonly dates?: readonly [notBefore: number, notAfter: number]
  readonly purpose?: keyof typeof PURPOSES
}

/** Issues a certificate: signed by `issuer`, or by itself. */
function issue(name: string, issuer?: Node, words: Words = {}): Node {
  const { isAuthority = false, dates = [NOT_BEFORE, NOT_AFTER], purpose } = words
  const keys = newKeyPair('P-256')
  const certificate = forgeCertificate({
    subject: name,
    issuer: issuer?.name ?? name,
    publicKey: keys.publicKey,
    signingKey: (issuer ?? keys).privateKey,
    notBefore: dates[0],
    notAfter: dates[1],
    extensions: [
      extensions.basicConstraints(isAuthority),
      ...(purpose ? [extensions.extendedKeyUsage(PURPOSES[purpose])] : []),
    ],
  })
  return { ...keys, name, certificate }
}

const makeAuthority = (name: string, issuer?: Node, words: Words = {}) =>
  issue(name, issuer, { ...words, isAuthority: true })
const certificatesOf = (...nodes: readonly Node[]) => nodes.map(({ certificate }) => certificate)

let root: Node
let intermediate: Node
let store: ClientTrustStore

beforeAll(() => {
  root = makeAuthority('own root')
  intermediate = makeAuthority('own intermediate', root)
})
beforeEach(() => {
  store = new ClientTrustStore({
    trust: { anchors: certificatesOf(root, intermediate), roots: certificatesOf(root) },
  })
})

const CLAIM = { location: 'COMMON_NAME' } as CertificateAuthority['externalIdClaim']

/** The record of an authority that an operator brought, open to everything. */
function record(id: string, [anchor, ...more]: readonly Node[], values: Partial<CertificateAuthority> = {}) {
  const flags = { isVerified: true, isAuthEnabled: true, isAutoCaEnrollmentEnabled: true, externalIdClaim: null }
  const certPem = certificatesOf(anchor as Node, ...more)
    .map(toCertificatePem)
    .join('')
  const subject = toNameKey(anchor?.certificate.subject ?? '')
  return { id, certPem, subject, ...flags, ...values } as unknown as CertificateAuthority
}

function apply(operation: Change['operation'], id: string, after?: CertificateAuthority, resource = 'cas'): void {
  const change = toChange({ operation, audit: 'none', resource, id, at: NOW, after: after && { ...after } })
  store.apply({ position: 1, at: 1, changes: [change], tables: [] })
}

/** Registers an authority. */
function register(id: string, nodes: readonly Node[], values: Partial<CertificateAuthority> = {}): void {
  apply('create', id, record(id, nodes, values))
}

const authenticator = (caId: string | null): AuthenticatorMatch => ({
  ...NO_CERTIFICATE,
  id: 'authenticator',
  identityId: 'device',
  passwordHash: null,
  caId,
})

/** The ids of the authorities that a sign-in is verified against; the controller itself is `own`. */
const listForSignIn = (match: AuthenticatorMatch | undefined, ...presented: readonly Node[]) =>
  store
    .listForSignIn(match, certificatesOf(...presented))
    .map((authority) => ('record' in authority ? (authority as RegisteredAuthority).record.id : 'own'))

describe('a sign-in by a certificate of an authenticator', () => {
  it('is verified against the controller alone if the controller issued the certificate', () => {
    const factory = makeAuthority('factory')
    register('factory', [factory], { externalIdClaim: CLAIM })

    expect(listForSignIn(authenticator(null), issue('device', factory))).toEqual(['own'])
  })

  it('is verified against its own authority first, and then against those that may have issued it', () => {
    const [factory, namesake, other] = [makeAuthority('factory'), makeAuthority('factory'), makeAuthority('other')]
    register('namesake', [namesake])
    register('factory', [factory])
    register('other', [other])

    expect(listForSignIn(authenticator('factory'), issue('device', factory))).toEqual(['factory', 'namesake'])
  })

  it('is verified against its own authority even if another name stands in the certificate', () => {
    register('factory', [makeAuthority('factory')])

    expect(listForSignIn(authenticator('factory'), issue('device', makeAuthority('other')))).toEqual(['factory'])
  })

  it.each([
    ['closed', { isAuthEnabled: false }],
    ['not verified', { isVerified: false }],
  ])('is not verified against an authority that is %s', (_how, values) => {
    const factory = makeAuthority('factory')
    register('namesake', [makeAuthority('factory')], values)
    register('factory', [factory])

    expect(listForSignIn(authenticator('factory'), issue('device', factory))).toEqual(['factory'])
  })

  it('is not verified against its own authority if that is closed or gone', () => {
    const factory = makeAuthority('factory')
    register('factory', [factory], { isAuthEnabled: false })
    register('successor', [makeAuthority('factory')])
    const device = issue('device', factory)

    expect(listForSignIn(authenticator('factory'), device)).toEqual(['successor'])
    expect(listForSignIn(authenticator('deleted'), device)).toEqual(['successor'])
  })

  it('is verified against the authority of any certificate that is presented, once', () => {
    const factory = makeAuthority('factory')
    const line = makeAuthority('line', factory)
    register('factory', [factory])
    register('line', [line])
    const presented = [issue('device', line), line, makeAuthority('second line', factory)]

    expect(listForSignIn(authenticator('deleted'), ...presented)).toEqual(['line', 'factory'])
  })
})

describe('a sign-in by a certificate without an authenticator', () => {
  it('is verified against the authorities that find identities by a claim, and never against the controller', () => {
    const factory = makeAuthority('factory')
    register('without', [makeAuthority('factory')])
    register('claiming', [factory], { externalIdClaim: CLAIM })
    register('closed', [makeAuthority('factory')], { externalIdClaim: CLAIM, isAuthEnabled: false })
    register('unverified', [makeAuthority('factory')], { externalIdClaim: CLAIM, isVerified: false })

    expect(listForSignIn(undefined, issue('device', factory))).toEqual(['claiming'])
    expect(listForSignIn(undefined, issue('stranger', makeAuthority('unknown')))).toEqual([])
    expect(listForSignIn(undefined, issue('impostor', intermediate))).toEqual([])
  })
})

describe('a certificate of the controller', () => {
  const judge = (leaf: Node, ...others: readonly Node[]) =>
    store.judge(store.listForSignIn(authenticator(null), []), leaf.certificate, certificatesOf(...others), NOW)

  it('leads properly to the root over what the client presents, and otherwise to the intermediate', () => {
    const device = issue('device', intermediate)

    expect(judge(device, intermediate)).toEqual({
      registered: undefined,
      claim: null,
      isProper: true,
      anchors: certificatesOf(root, intermediate),
    })
    expect(judge(device)).toMatchObject({ registered: undefined, isProper: false })
    expect(judge(device, makeAuthority('own intermediate'))).toMatchObject({ isProper: false })
  })

  it('costs one signature check if its issuers were checked before, also for another connection', () => {
    const [first, second] = [issue('device', intermediate), issue('device', intermediate)]
    const copy = { ...intermediate, certificate: new X509Certificate(intermediate.certificate.raw) }
    judge(first, intermediate)
    const verify = vi.spyOn(X509Certificate.prototype, 'verify')

    const verdict = judge(second, copy)
    const checks = verify.mock.calls.length
    verify.mockRestore()

    expect(verdict).toMatchObject({ isProper: true })
    expect(checks).toBe(1)
  })

  it('leads nowhere if another authority of the same name issued it', () => {
    const impostor = makeAuthority('own intermediate')

    expect(judge(issue('device', impostor), impostor)).toBeUndefined()
  })

  it('may have expired, which the auth policy judges, and may serve any purpose', () => {
    const late = issue('device', intermediate, { dates: [NOW - 2 * DAY, NOW - DAY] })

    expect(judge(late, intermediate)).toMatchObject({ isProper: true })
    expect(judge(issue('server', intermediate, { purpose: 'server' }), intermediate)).toMatchObject({ isProper: true })
  })

  it('leads nowhere over an intermediate that has expired', () => {
    const expired = makeAuthority('expired', root, { dates: [NOW - 2 * DAY, NOW - DAY] })

    expect(judge(issue('device', expired), expired)).toBeUndefined()
  })

  it('is that of its own client if it may authenticate clients', () => {
    const isOwnClient = (leaf: Node) => store.isOwnClient(leaf.certificate, NOW)

    expect(isOwnClient(issue('device', intermediate, { purpose: 'client' }))).toBe(true)
    expect(isOwnClient(issue('device', intermediate))).toBe(true)
    expect(isOwnClient(issue('server', intermediate, { purpose: 'server' }))).toBe(false)
    expect(isOwnClient(issue('stranger', makeAuthority('factory')))).toBe(false)
  })

  it('is its own from the first to the last instant of its validity, whatever it may be used for', () => {
    // Its issuers are valid for longer.
    const [notBefore, notAfter] = [NOW - DAY, NOW + DAY]
    const { certificate } = issue('router', intermediate, { dates: [notBefore, notAfter], purpose: 'server' })
    const instants = [notBefore - 1, notBefore, NOW, notAfter, notAfter + 1]
    const foreign = issue('router', makeAuthority('factory'))

    expect(instants.map((now) => store.isOwn(certificate, now))).toEqual([false, true, true, true, false])
    expect(store.isOwn(foreign.certificate, NOW)).toBe(false)
  })

  it('is told from one with other bytes among the authorities of the controller', () => {
    const nodes = [root, intermediate, makeAuthority('own root'), issue('device', intermediate)]

    expect(nodes.map(({ certificate }) => store.isOwnAuthority(certificate))).toEqual([true, true, false, false])
  })
})

describe('a certificate of an operator', () => {
  const judge = (ids: readonly string[], leaf: Node, ...others: readonly Node[]) => {
    const authorities = ids.map((id) => store.getRegistered(id) as RegisteredAuthority)
    return store.judge(authorities, leaf.certificate, certificatesOf(...others), NOW)
  }

  it('leads to the first of several authorities that issued it', () => {
    const factory = makeAuthority('factory')
    register('namesake', [makeAuthority('factory')])
    register('factory', [factory])

    const verdict = judge(['namesake', 'factory'], issue('device', factory))

    expect(verdict?.registered?.record.id).toBe('factory')
    expect(verdict).toMatchObject({ isProper: true })
    expect(judge(['namesake'], issue('device', factory))).toBeUndefined()
  })

  it('leads to it over the intermediates that came with the authority, or that the client presents', () => {
    const factory = makeAuthority('factory')
    const line = makeAuthority('line', factory)
    register('bundle', [factory, line])
    register('bare', [factory])
    const device = issue('device', line)

    expect(judge(['bundle'], device)?.registered?.record.id).toBe('bundle')
    expect(judge(['bare'], device)).toBeUndefined()
    expect(judge(['bare'], device, line)?.registered?.record.id).toBe('bare')
  })

  it('does not end at an intermediate that came with the authority', () => {
    const factory = makeAuthority('factory')
    register('mixed', [factory, makeAuthority('unrelated')])

    expect(judge(['mixed'], issue('device', makeAuthority('unrelated')))).toBeUndefined()
    expect(store.getRegistered('mixed')?.anchors).toHaveLength(1)
  })

  it('costs at most 16 signature checks, besides four of the handshake, however many authorities have its name', () => {
    const ids = Array.from({ length: 25 }, (_, position) => `factory ${position}`)
    for (const id of ids) register(id, [makeAuthority('factory')])
    const device = issue('device', makeAuthority('factory'))
    const verify = vi.spyOn(X509Certificate.prototype, 'verify')

    const verdict = judge(ids, device)
    const checks = verify.mock.calls.length
    verify.mockRestore()

    expect([verdict, checks]).toEqual([undefined, 16])
  })

  it('that an administrator gives to an identity leads to a verified authority, open to sign-ins or not', () => {
    const [factory, unverified] = [makeAuthority('factory'), makeAuthority('unverified')]
    register('factory', [factory], { isAuthEnabled: false, isAutoCaEnrollmentEnabled: false })
    register('unverified', [unverified], { isVerified: false })
    const findAuthority = (leaf: Node) => store.findAuthority(leaf.certificate, NOW)

    expect(findAuthority(issue('device', factory))?.registered?.record.id).toBe('factory')
    expect(findAuthority(issue('device', unverified))).toBeUndefined()
    const own = findAuthority(issue('device', intermediate))
    expect([own?.registered, own?.isProper]).toEqual([undefined, false])
  })
})

describe('a certificate that names its identity', () => {
  const servers = () => issue('server', root, { purpose: 'server' })
  const judge = (leaf: Node, canBePinned: boolean) =>
    store.judge([store.getRegistered('one') as RegisteredAuthority], leaf.certificate, [], NOW, { canBePinned })
  beforeEach(() => apply('create', 'one', record('one', [root], { externalIdClaim: CLAIM })))

  it('does so if it may authenticate clients', () => {
    const device = issue('device', root)

    for (const canBePinned of [true, false]) expect(judge(device, canBePinned)).toMatchObject({ claim: CLAIM })
  })

  it('and may not authenticate clients leads to its authority only for an authenticator', () => {
    expect(judge(servers(), false)).toBeUndefined()
    expect(judge(servers(), true)).toMatchObject({ registered: { record: { id: 'one' } }, claim: null })
  })
})

describe('an enrollment by certificate', () => {
  const findEnrolling = (...presented: readonly Node[]) =>
    store.findEnrolling(certificatesOf(...presented), NOW)?.record.id

  it('finds the verified authority that lets every certificate enroll, even if it is closed to sign-ins', () => {
    const factory = makeAuthority('factory')
    register('namesake', [makeAuthority('factory')])
    register('factory', [factory], { isAuthEnabled: false })

    expect(findEnrolling(issue('device', factory))).toBe('factory')
  })

  it.each([
    ['does not let every certificate enroll', { isAutoCaEnrollmentEnabled: false }],
    ['is not verified', { isVerified: false }],
  ])('finds no authority that %s', (_how, values) => {
    const factory = makeAuthority('factory')
    register('factory', [factory], values)

    expect(findEnrolling(issue('device', factory))).toBeUndefined()
  })

  it('needs a certificate that is valid now, and may authenticate clients', () => {
    const factory = makeAuthority('factory')
    register('factory', [factory])
    const dates = [NOW - 2 * DAY, NOW - DAY] as const

    expect(findEnrolling()).toBeUndefined()
    expect(findEnrolling(issue('late', factory, { dates }))).toBeUndefined()
    expect(findEnrolling(issue('server', factory, { purpose: 'server' }))).toBeUndefined()
    expect(findEnrolling(issue('client', factory, { purpose: 'client' }))).toBe('factory')
  })

  it('takes at most ten certificates, and intermediates from the client or from the authority', () => {
    const factory = makeAuthority('factory')
    const line = makeAuthority('line', factory)
    register('factory', [factory])
    const device = issue('device', line)
    const present = (count: number) => [device, line, ...Array.from({ length: count - 2 }, () => factory)]
    const missing = findEnrolling(device)
    const counts = [10, 11].map((count) => findEnrolling(...present(count)))
    apply('update', 'factory', record('factory', [factory, line]))

    expect([missing, ...counts]).toEqual([undefined, 'factory', undefined])
    expect(findEnrolling(device)).toBe('factory')
  })

  it('by token is vouched for by the authority of the token only', () => {
    const [factory, other] = [makeAuthority('factory'), makeAuthority('other')]
    register('factory', [factory], { isAutoCaEnrollmentEnabled: false })
    const authority = store.getRegistered('factory') as RegisteredAuthority
    const isVouchedBy = (leaf: Node) => store.isVouchedBy(authority, certificatesOf(leaf), NOW)

    expect(isVouchedBy(issue('device', factory))).toBe(true)
    expect(isVouchedBy(issue('device', other))).toBe(false)
  })
})

describe('the authorities in memory', () => {
  it('are those that were registered and not deleted', () => {
    expect(store.hasRegistered).toBe(false)
    register('factory', [makeAuthority('factory')])
    expect([store.hasRegistered, store.getRegistered('factory')?.record.id]).toEqual([true, 'factory'])

    apply('delete', 'factory')

    expect([store.hasRegistered, store.getRegistered('factory')]).toEqual([false, undefined])
    expect(() => apply('delete', 'factory')).not.toThrow()
  })

  it('follow a change at once, in every name under which they were found', () => {
    const factory = makeAuthority('factory')
    const line = makeAuthority('line', factory)
    const devices = [issue('device', factory), issue('device', line)]
    const listFor = () => devices.map((device) => listForSignIn(undefined, device))
    register('factory', [factory, line], { externalIdClaim: CLAIM })
    const open = listFor()
    apply('update', 'factory', record('factory', [factory, line], { externalIdClaim: null }))
    const withoutClaim = listFor()
    apply('update', 'factory', record('factory', [factory], { externalIdClaim: CLAIM }))
    const withoutLine = listFor()
    apply('delete', 'factory')

    expect([open, withoutClaim]).toEqual([
      [['factory'], ['factory']],
      [[], []],
    ])
    expect([withoutLine, listFor()]).toEqual([
      [['factory'], []],
      [[], []],
    ])
  })

  it('are found under a name that another one had, too', () => {
    const factory = makeAuthority('factory')
    const device = issue('device', factory)
    register('first', [factory], { externalIdClaim: CLAIM })
    register('second', [makeAuthority('factory')], { externalIdClaim: CLAIM })

    apply('delete', 'first')

    expect(listForSignIn(undefined, device)).toEqual(['second'])
    apply('delete', 'second')
    register('third', [makeAuthority('factory')], { externalIdClaim: CLAIM })
    expect(listForSignIn(undefined, device)).toEqual(['third'])
  })

  it('do not follow the changes of other records', () => {
    const factory = makeAuthority('factory')
    register('factory', [factory])

    apply('delete', 'factory', undefined, 'identities')
    apply('create', 'other', record('other', [factory]), 'identities')

    expect(['factory', 'other'].map((id) => store.getRegistered(id)?.record.id)).toEqual(['factory', undefined])
  })
})
