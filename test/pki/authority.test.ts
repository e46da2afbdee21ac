// The controller's own authority through renewal and rotation: clients that keep the bundle of their enrollment trust it.
import { X509Certificate } from 'node:crypto'
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Authority } from '../../src/pki/authority.ts'
import { computeFingerprint, readNotAfter, readNotBefore } from '../../src/pki/certificates.ts'
import { buildChain, isSelfSigned } from '../../src/pki/chains.ts'
import { parsePemBlocks } from '../../src/pki/pem.ts'
import { readSigningRequest } from '../../src/pki/requests.ts'
import { clientKey } from '../world/certificates.ts'

const DAY = 24 * 60 * 60 * 1000
const YEAR = 365 * DAY
const NOW = Date.UTC(2026, 5, 1)
const HOSTS = ['controller.example']

const folder = mkdtempSync(join(tmpdir(), 'pki-'))
const template = join(folder, 'template')
beforeAll(() => Authority.make(template, HOSTS, NOW))
afterAll(() => rmSync(folder, { recursive: true }))

let sequence = 0

/** A copy of one authority, because making RSA keys takes long. */
function newAuthority(): { directory: string; authority: Authority } {
  const directory = join(folder, `${++sequence}`)
  cpSync(template, directory, { recursive: true })
  return { directory, authority: Authority.load(directory) }
}

function parse(pem: string): X509Certificate[] {
  return parsePemBlocks(pem).map(({ bytes }) => new X509Certificate(bytes))
}

/** Whether a client that trusts only these authorities accepts what the server sends. */
function isAccepted({ serverChainPem }: Authority, trusted: readonly X509Certificate[], now: number): boolean {
  const [leaf, ...others] = parse(serverChainPem)
  return buildChain(leaf as X509Certificate, others, trusted.filter(isSelfSigned), { now }) !== undefined
}

async function issue(authority: Authority, now: number): Promise<X509Certificate[]> {
  const { csr } = await clientKey('device')
  return parse(authority.clientChainPem(authority.issueClient(readSigningRequest(csr), now)))
}

describe('a renewal of the server certificate', () => {
  it('keeps the key, and the key ids of earlier certificates', () => {
    const { authority } = newAuthority()
    const before = authority.server

    authority.renewServer(HOSTS, NOW + DAY)

    expect(authority.server.certificate.publicKey.equals(before.certificate.publicKey)).toBe(true)
    expect(authority.serverCertificates.map(computeFingerprint)).toEqual([
      computeFingerprint(authority.server.certificate),
      computeFingerprint(before.certificate),
    ])
  })

  it('notifies its listeners once, with the new certificate in place', () => {
    const { authority } = newAuthority()
    const observations: string[] = []
    authority.onChange(() => observations.push(computeFingerprint(authority.server.certificate)))

    authority.renewServer(HOSTS, NOW + DAY)

    expect(observations).toEqual([computeFingerprint(authority.server.certificate)])
  })

  it('is still valid after a clock is corrected that was set forward by mistake', () => {
    const { authority } = newAuthority()

    authority.renewDue(HOSTS, NOW + YEAR - DAY)

    expect(readNotBefore(authority.server.certificate)).toBeLessThan(NOW)
  })

  it('is made again if a clock that was ahead made one that ends too late', () => {
    const { authority } = newAuthority()
    authority.renewDue(HOSTS, NOW + YEAR - DAY)

    expect(authority.renewDue(HOSTS, NOW)).toEqual(['server'])
    expect(readNotAfter(authority.server.certificate)).toBe(NOW + YEAR)
  })

  it('is made again if a clock that was far ahead made one that is not valid yet', () => {
    const { authority } = newAuthority()
    authority.renewDue(HOSTS, NOW + 3 * YEAR)

    expect(authority.renewDue(HOSTS, NOW)).toEqual(['server'])
    expect(readNotBefore(authority.server.certificate)).toBeLessThan(NOW)
  })

  it('does not happen while the clock is behind', () => {
    const { authority } = newAuthority()

    expect(authority.renewDue(HOSTS, NOW - YEAR)).toEqual([])
  })
})

describe('the roll-over of the intermediate', () => {
  it('happens in the last third of its life, and once', () => {
    const { authority } = newAuthority()

    expect(authority.renewDue(HOSTS, NOW + 9 * YEAR)).toEqual(['server'])
    expect(authority.renewDue(HOSTS, NOW + 11 * YEAR)).toEqual(['intermediate', 'server'])
    expect(authority.renewDue(HOSTS, NOW + 11 * YEAR)).toEqual([])
  })

  it('leaves certificates of the former intermediate valid, presented with it or alone', async () => {
    const { authority } = newAuthority()
    const [leaf, ...others] = await issue(authority, NOW)

    authority.rotateIntermediate(HOSTS, NOW)

    const { anchors, roots } = authority.trust
    expect(buildChain(leaf as X509Certificate, others, roots, { now: NOW })).toHaveLength(3)
    expect(buildChain(leaf as X509Certificate, [], anchors, { now: NOW })).toBeDefined()
    expect(authority.bundle).toHaveLength(3)
  })

  it('leaves the roots last in what clients store, because some of them do not read the first certificate', () => {
    const { authority } = newAuthority()
    const areRoots = () => authority.bundle.map(isSelfSigned)
    const atFirst = areRoots()
    authority.rotateIntermediate(HOSTS, NOW)
    const withFormer = areRoots()
    authority.rotateRoot(HOSTS, NOW)

    expect(atFirst).toEqual([false, true])
    expect(withFormer).toEqual([false, false, true])
    expect(areRoots()).toEqual([...areRoots().filter((isRoot) => !isRoot), true, true])
    expect(authority.bundle.filter(isSelfSigned)[0]).toBe(authority.root)
  })

  it('issues by the new one, for clients that know only the root', async () => {
    const { authority } = newAuthority()
    const knownBundle = authority.bundle

    authority.rotateIntermediate(HOSTS, NOW)

    const [leaf, ...others] = await issue(authority, NOW)
    expect(isAccepted(authority, knownBundle, NOW)).toBe(true)
    expect(buildChain(leaf as X509Certificate, others, knownBundle.filter(isSelfSigned), { now: NOW })).toHaveLength(3)
  })

  it('never ends after the root, and does not repeat itself at the end of the root', () => {
    const { authority } = newAuthority()
    const end = readNotAfter(authority.root)
    for (let now = NOW; now < end; now += 30 * DAY) authority.renewDue(HOSTS, now)

    expect(readNotAfter(authority.intermediate.certificate)).toBe(end)
    expect(readNotAfter(authority.server.certificate)).toBeLessThanOrEqual(end)
    expect(authority.renewDue(HOSTS, end - DAY)).toEqual([])
  })
})

describe('the replacement of the root', () => {
  it('is trusted by clients that know only the previous root, and by those that know only the new one', () => {
    const { authority } = newAuthority()
    const knownBundle = authority.bundle

    authority.rotateRoot(HOSTS, NOW)

    expect(isAccepted(authority, knownBundle, NOW)).toBe(true)
    expect(isAccepted(authority, [authority.root], NOW)).toBe(true)
    expect(authority.bundle.filter(isSelfSigned)).toHaveLength(2)
  })

  it('issues client certificates that lead to both roots', async () => {
    const { authority } = newAuthority()
    const knownBundle = authority.bundle
    authority.rotateRoot(HOSTS, NOW)

    const [leaf, ...others] = await issue(authority, NOW)

    for (const trusted of [knownBundle, [authority.root]]) {
      expect(buildChain(leaf as X509Certificate, others, trusted.filter(isSelfSigned), { now: NOW })).toBeDefined()
    }
  })

  it('cannot begin twice, nor end if it has not begun', () => {
    const { authority } = newAuthority()

    expect(() => authority.finishRootRotation(NOW)).toThrow(expect.objectContaining({ code: 'NO_ROOT_ROTATION' }))
    authority.rotateRoot(HOSTS, NOW)
    expect(() => authority.rotateRoot(HOSTS, NOW)).toThrow(expect.objectContaining({ code: 'ROOT_ROTATION_UNDER_WAY' }))
  })

  it('ends with the new root alone, while certificates of the previous one remain valid', async () => {
    const { directory, authority } = newAuthority()
    const knownBundle = authority.bundle
    const [leaf, ...others] = await issue(authority, NOW)
    authority.rotateRoot(HOSTS, NOW)

    authority.finishRootRotation(NOW)

    for (const each of [authority, Authority.load(directory)]) {
      expect(isAccepted(each, knownBundle, NOW)).toBe(false)
      expect(isAccepted(each, [each.root], NOW)).toBe(true)
      expect(each.bundle.filter(isSelfSigned)).toEqual([each.root])
      expect(parse(each.serverChainPem)).toHaveLength(2)
      expect(buildChain(leaf as X509Certificate, others, each.trust.roots, { now: NOW })).toBeDefined()
    }
    expect(parse(readFileSync(join(directory, 'root.crt'), 'utf8'))).toHaveLength(1)
  })

  it('can happen again after it ended', () => {
    const { directory, authority } = newAuthority()
    authority.rotateRoot(HOSTS, NOW)
    authority.finishRootRotation(NOW)
    const knownBundle = authority.bundle

    Authority.load(directory).rotateRoot(HOSTS, NOW)

    const again = Authority.load(directory)
    expect(isAccepted(again, knownBundle, NOW)).toBe(true)
    expect(again.former.filter(isSelfSigned)).toHaveLength(1)
    expect(again.trustDomain).toBe(authority.trustDomain)
  })
})

describe('the files', () => {
  it('hold after a rotation what memory holds, in private files, and one key each', () => {
    const { directory, authority } = newAuthority()
    authority.rotateRoot(HOSTS, NOW)

    const again = Authority.load(directory)

    expect(again.serverChainPem).toBe(authority.serverChainPem)
    expect(again.serverKeyPem).toBe(authority.serverKeyPem)
    expect(again.bundle.map(computeFingerprint)).toEqual(authority.bundle.map(computeFingerprint))
    for (const name of readdirSync(directory)) {
      expect(statSync(join(directory, name)).mode & 0o777).toBe(0o600)
      const keys = parsePemBlocks(readFileSync(join(directory, name), 'utf8')).filter(({ label }) =>
        label.includes('KEY'),
      )
      expect(keys).toHaveLength(name.endsWith('.key') ? 1 : 0)
    }
  })

  it('are not changed by loading them, however late it is', () => {
    const { directory } = newAuthority()
    const read = () => readdirSync(directory).map((name) => readFileSync(join(directory, name), 'utf8'))
    const before = read()

    Authority.load(directory)

    expect(read()).toEqual(before)
  })

  it('work without the key of the root, until an authority must be issued', () => {
    const { directory } = newAuthority()
    rmSync(join(directory, 'root.key'))
    const authority = Authority.load(directory)

    expect(authority.renewDue(HOSTS, NOW + 0.8 * YEAR)).toEqual(['server'])
    expect(() => authority.rotateIntermediate(HOSTS, NOW)).toThrow(expect.objectContaining({ name: 'KeyFileError' }))
  })

  it('let the server certificate be renewed while the intermediate cannot be, because the key of the root is elsewhere', () => {
    const { directory } = newAuthority()
    rmSync(join(directory, 'root.key'))
    const authority = Authority.load(directory)
    const now = NOW + 11 * YEAR

    expect(() => authority.renewDue(HOSTS, now)).toThrow(expect.objectContaining({ name: 'KeyFileError' }))

    expect(readNotAfter(authority.server.certificate)).toBe(now + YEAR)
  })
})
