// Chains: the verdicts on generated chains are those of OpenSSL, and what is judged more strictly is listed.
import { execFile, execFileSync } from 'node:child_process'
import { generateKeyPairSync, type X509Certificate } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { toCertificatePem } from '../../src/pki/certificates.ts'
import { buildChain, type ChainPurpose, findAuthorityObjection } from '../../src/pki/chains.ts'
import { der } from '../../src/pki/der.ts'
import {
  extensions,
  type Forgery,
  forgeCertificate,
  type KeyPair,
  newKeyPair,
  PURPOSES,
} from '../world/forged-certificates.ts'
import { lacks } from '../world/machine.ts'

const NOW = Date.UTC(2026, 5, 1)
const DAY = 24 * 60 * 60 * 1000

const DATES = {
  current: [NOW - DAY, NOW + DAY],
  expired: [NOW - 2 * DAY, NOW - DAY],
  future: [NOW + DAY, NOW + 2 * DAY],
} as const

// ---- generated chains ------------------------------------------------------------------------------------------------

const weighted = <T>(...choices: readonly (readonly [weight: number, value: T])[]) =>
  fc.oneof(...choices.map(([weight, value]) => ({ weight, arbitrary: fc.constant(value) })))

const purposes = weighted<readonly (keyof typeof PURPOSES)[]>(
  [24, []],
  [6, ['client']],
  [5, ['client', 'server']],
  [1, ['server']],
)
const dates = weighted<keyof typeof DATES>([30, 'current'], [2, 'expired'], [2, 'future'])
const signature = weighted([40, 'good'], [1, 'of another key'], [1, 'broken'])
const further = weighted(
  [40, 'none'],
  [1, 'critical'],
  [4, 'unknown'],
  [1, 'name constraints'],
  [1, 'critical name constraints'],
  [2, 'critical policies'],
)

const authority = fc.record({
  pathLength: weighted<number | undefined>([16, undefined], [1, 0], [2, 1], [2, 2], [1, 3]),
  constraints: weighted([40, 'authority'], [1, 'leaf'], [1, 'none']),
  keyUsage: weighted<'none' | 'keyCertSign' | 'digitalSignature'>(
    [10, 'none'],
    [20, 'keyCertSign'],
    [1, 'digitalSignature'],
  ),
  /** It has the name of its issuer: the certificate of a new key of the same authority. */
  isSelfIssued: weighted([8, false], [1, true]),
  purposes,
  dates,
  signature,
  further,
})
const leafArbitrary = fc.record({
  keyUsage: weighted<'none' | 'digitalSignature'>([1, 'none'], [2, 'digitalSignature']),
  purposes,
  dates,
  signature,
  further,
})

const chainArbitrary = fc.record({
  /** The root first. */
  authorities: fc.array(authority, { minLength: 1, maxLength: 5 }),
  leaf: leafArbitrary,
  /** The trusted authority. */
  anchor: weighted([12, 0], [2, 1], [1, 2]),
  /** The authority that the client does not present. */
  missing: weighted<number | undefined>([20, undefined], [1, 1], [1, 2]),
  isRootPresented: fc.boolean(),
  hasNoise: fc.boolean(),
  order: fc.integer(),
})

type ChainSpec = typeof chainArbitrary extends fc.Arbitrary<infer T> ? T : never

interface GeneratedChain {
  readonly leaf: X509Certificate
  readonly presented: readonly X509Certificate[]
  readonly anchors: readonly X509Certificate[]
  /** OpenSSL judges an authority by rules that this controller does not have: it accepts fewer. */
  readonly isJudgedMoreStrictly: boolean
}

let keys: readonly KeyPair[]
let foreign: KeyPair
let noise: readonly X509Certificate[]

beforeAll(() => {
  keys = (['P-256', 'RSA-2048', 'P-384', 'P-256', 'Ed25519', 'P-256'] as const).map(newKeyPair)
  foreign = newKeyPair('P-256')
  noise = ['noise', 'authority 0'].map((name) => {
    const { publicKey, privateKey } = newKeyPair('P-256')
    const own = [extensions.basicConstraints(true), extensions.subjectKey(publicKey)]
    return forge({ subject: name, issuer: name, publicKey, signingKey: privateKey, extensions: own })
  })
})

function forge(forgery: Omit<Forgery, 'notBefore' | 'notAfter'>, period: keyof typeof DATES = 'current') {
  const [notBefore, notAfter] = DATES[period]
  return forgeCertificate({ ...forgery, notBefore, notAfter })
}

function furtherExtensions(kind: ChainSpec['leaf']['further']): Buffer[] {
  switch (kind) {
    case 'critical':
      return [extensions.unknown(true)]
    case 'unknown':
      return [extensions.unknown(false)]
    case 'name constraints':
      return [extensions.nameConstraints(false)]
    case 'critical name constraints':
      return [extensions.nameConstraints(true)]
    case 'critical policies':
      return [extensions.anyPolicy(true)]
    default:
      return []
  }
}

const purposeExtension = (names: readonly (keyof typeof PURPOSES)[]) =>
  names.length === 0 ? [] : [extensions.extendedKeyUsage(...names.map((name) => PURPOSES[name]))]

function generate(spec: ChainSpec): GeneratedChain {
  const certificates: X509Certificate[] = []
  let parent: { name: string; keys: KeyPair } | undefined
  for (const [at, one] of spec.authorities.entries()) {
    const own = keys[at] as KeyPair
    const name: string = parent && one.isSelfIssued ? parent.name : `authority ${at}`
    const issuer = parent ?? { name, keys: own }
    certificates.push(
      forge(
        {
          subject: name,
          issuer: issuer.name,
          publicKey: own.publicKey,
          signingKey: (one.signature === 'of another key' ? foreign : issuer.keys).privateKey,
          isSignatureBroken: one.signature === 'broken',
          extensions: [
            ...(one.constraints === 'none' ? [] : [constraintsOf(one)]),
            ...(one.keyUsage === 'none' ? [] : [extensions.keyUsage(one.keyUsage)]),
            ...purposeExtension(one.purposes),
            ...furtherExtensions(one.further),
            extensions.subjectKey(own.publicKey),
            extensions.issuerKey(issuer.keys.publicKey),
          ],
        },
        one.dates,
      ),
    )
    parent = { name, keys: own }
  }
  const issuer = parent as { name: string; keys: KeyPair }
  const { publicKey } = keys[5] as KeyPair
  const leaf = forge(
    {
      subject: 'leaf',
      issuer: issuer.name,
      publicKey,
      signingKey: (spec.leaf.signature === 'of another key' ? foreign : issuer.keys).privateKey,
      isSignatureBroken: spec.leaf.signature === 'broken',
      extensions: [
        ...(spec.leaf.keyUsage === 'none' ? [] : [extensions.keyUsage(spec.leaf.keyUsage)]),
        ...purposeExtension(spec.leaf.purposes),
        ...furtherExtensions(spec.leaf.further),
        extensions.issuerKey(issuer.keys.publicKey),
      ],
    },
    spec.leaf.dates,
  )
  const anchorAt = Math.min(spec.anchor, certificates.length - 1)
  const presented = certificates.filter(
    (_, at) => at !== anchorAt && at !== spec.missing && (at > 0 || spec.isRootPresented),
  )
  const bag = spec.hasNoise ? [...presented, ...noise] : presented
  return {
    leaf,
    presented: shuffle(bag, spec.order),
    anchors: [certificates[anchorAt] as X509Certificate],
    isJudgedMoreStrictly:
      [...spec.authorities, spec.leaf].some(({ further }) => further.includes('name constraints')) ||
      // OpenSSL takes the key usage for the basic constraints that are missing.
      spec.authorities.some(({ constraints, keyUsage }) => constraints === 'none' && keyUsage === 'keyCertSign'),
  }
}

function constraintsOf({ constraints, pathLength }: ChainSpec['authorities'][number]): Buffer {
  return constraints === 'authority'
    ? extensions.basicConstraints(true, pathLength)
    : extensions.basicConstraints(false)
}

function shuffle<T>(values: readonly T[], order: number): T[] {
  const rotated = values.map((value, at) => ({ value, key: Math.imul(order + at, 0x9e3779b1) >>> 0 }))
  return rotated.sort((a, b) => a.key - b.key).map(({ value }) => value)
}

// ---- OpenSSL ---------------------------------------------------------------------------------------------------------

const hasOpenssl = (() => {
  try {
    return /^OpenSSL 3\./.test(execFileSync('openssl', ['version'], { encoding: 'utf8' }))
  } catch {
    return false
  }
})()
if (!hasOpenssl) process.stderr.write('chains are not compared with OpenSSL: there is no openssl 3 on this machine\n')

let directory: string
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'chains-'))
})
afterAll(() => rmSync(directory, { recursive: true, force: true }))

/** The verdict of OpenSSL on a chain at `NOW`. */
function verifyByOpenssl({ leaf, presented, anchors }: GeneratedChain, purpose?: 'client'): Promise<boolean> {
  const write = (name: string, certificates: readonly X509Certificate[]) => {
    const path = join(directory, name)
    writeFileSync(path, certificates.map(toCertificatePem).join(''))
    return path
  }
  const trusted = ['-trusted', write('anchors.pem', anchors)]
  const untrusted = presented.length > 0 ? ['-untrusted', write('presented.pem', presented)] : []
  const time = ['-partial_chain', '-attime', String(NOW / 1000)]
  const arguments_ = ['verify', ...time, ...(purpose ? ['-purpose', 'sslclient'] : []), ...trusted, ...untrusted]
  return new Promise((resolve) => {
    execFile('openssl', [...arguments_, write('leaf.pem', [leaf])], (error) => resolve(error === null))
  })
}

describe.skipIf(lacks('openssl', hasOpenssl))('a generated chain', () => {
  it.each([undefined, 'client'] as const)(
    'has the verdict of OpenSSL for the purpose %s',
    async (purpose) => {
      const counts = { accepted: 0, rejected: 0 }
      await fc.assert(
        fc.asyncProperty(chainArbitrary, async (spec) => {
          const chain = generate(spec)
          const options = { now: NOW, ...(purpose ? { purpose } : {}) }

          const isAccepted = buildChain(chain.leaf, chain.presented, chain.anchors, options) !== undefined
          const isAcceptedByOpenssl = await verifyByOpenssl(chain, purpose)

          counts[isAccepted ? 'accepted' : 'rejected'] += 1
          if (isAccepted || !chain.isJudgedMoreStrictly) expect(isAccepted).toBe(isAcceptedByOpenssl)
        }),
        { numRuns: Number(process.env.CHAIN_RUNS ?? 100), ...(process.env.CHAIN_RUNS ? {} : { seed: 20_260_601 }) },
      )
      // The chains are neither all good nor all broken.
      expect(Math.min(counts.accepted, counts.rejected)).toBeGreaterThan(20)
    },
    120_000,
  )
})

// ---- rules, one by one -----------------------------------------------------------------------------------------------

/** A certificate with its key, which issues others. */
interface Node {
  readonly name: string
  readonly keys: KeyPair
  readonly certificate: X509Certificate
}

interface NodeOptions {
  readonly extensions?: readonly Buffer[]
  readonly algorithm?: NonNullable<Forgery['algorithm']>
  readonly keys?: KeyPair
  /** The name; a new one by default. */
  readonly name?: string
}

let names = 0

function issue(
  issuer: Node | undefined,
  { extensions: own, algorithm, keys: given, name: wanted }: NodeOptions = {},
): Node {
  const keyPair = given ?? newKeyPair('P-256')
  const name = wanted ?? `name ${++names}`
  const certificate = forge({
    subject: name,
    issuer: issuer?.name ?? name,
    publicKey: keyPair.publicKey,
    signingKey: (issuer?.keys ?? keyPair).privateKey,
    extensions: own ?? [extensions.basicConstraints(true)],
    ...(algorithm ? { algorithm } : {}),
  })
  return { name, keys: keyPair, certificate }
}

const issueLeaf = (issuer: Node, options: NodeOptions = {}) => issue(issuer, { extensions: [], ...options })

/** How many certificates the chain has that is found; none if there is none. */
function countChain(leaf: Node, others: readonly Node[], anchors: readonly Node[], purpose?: ChainPurpose): number {
  const toCertificates = (nodes: readonly Node[]) => nodes.map(({ certificate }) => certificate)
  const options = { now: NOW, ...(purpose ? { purpose } : {}) }
  return buildChain(leaf.certificate, toCertificates(others), toCertificates(anchors), options)?.length ?? 0
}

describe('a path length', () => {
  const limited = (pathLength: number) => ({ extensions: [extensions.basicConstraints(true, pathLength)] })

  it('limits the authorities below an intermediate, and below the anchor itself', () => {
    for (const [rootLimit, topLimit, expected] of [
      [2, 1, 4],
      [1, 1, 0],
      [2, 0, 0],
    ] as const) {
      const root = issue(undefined, limited(rootLimit))
      const top = issue(root, limited(topLimit))
      const bottom = issue(top, limited(0))
      // The leaf itself does not count, also if it is an authority.
      const leaf = issue(bottom)

      expect(countChain(leaf, [bottom, top], [root])).toBe(expected)
    }
  })

  it('does not count a certificate for a new key of the same authority', () => {
    const root = issue(undefined, limited(1))
    const old = issue(root)
    const renewed = issue(old, { name: old.name })
    const leaf = issueLeaf(renewed)

    expect(countChain(leaf, [renewed, old], [root])).toBe(4)
  })

  it('is judged by the shortest path, whatever the order of the certificates', () => {
    const root = issue(undefined)
    const shared = newKeyPair('P-256')
    const direct = issue(root, { ...limited(1), keys: shared, name: 'shared' })
    const detourTop = issue(direct)
    const detour = issue(detourTop, { keys: shared, name: 'shared' })
    const bottom = issue(direct)
    const leaf = issueLeaf(bottom)

    for (const others of [
      [detour, detourTop, bottom, direct],
      [direct, bottom, detourTop, detour],
    ]) {
      expect(countChain(leaf, others, [root])).toBe(4)
    }
  })
})

describe('an authority', () => {
  it.each([
    ['without basic constraints', [], /not an authority/],
    ['that only its key usage marks as one', [extensions.keyUsage('keyCertSign')], /not an authority/],
    [
      'whose key usage forbids to sign',
      [extensions.basicConstraints(true), extensions.keyUsage('digitalSignature')],
      /not an authority/,
    ],
    [
      'with name constraints',
      [extensions.basicConstraints(true), extensions.nameConstraints(false)],
      /name constraints/,
    ],
    [
      'with an unknown critical extension',
      [extensions.basicConstraints(true), extensions.unknown(true)],
      /1\.3\.6\.1\.4\.1\.99999\.1/,
    ],
    [
      'with an extension that occurs twice',
      [extensions.basicConstraints(true), extensions.unknown(false), extensions.unknown(false)],
      /read/,
    ],
  ])('%s is not used, and the objection says why', (_what, own, objection) => {
    const root = issue(undefined, { extensions: own })

    expect(findAuthorityObjection(root.certificate)).toMatch(objection)
    expect(countChain(issueLeaf(root), [], [root])).toBe(0)
  })

  it.each([
    ['an unknown extension that is not critical', extensions.unknown(false)],
    ['a critical policy', extensions.anyPolicy(true)],
  ])('may have %s', (_what, own) => {
    const root = issue(undefined, { extensions: [extensions.basicConstraints(true), own] })

    expect(findAuthorityObjection(root.certificate)).toBeUndefined()
    expect(countChain(issueLeaf(root), [], [root])).toBe(2)
  })

  it('that restricts its purposes to servers issues no clients', () => {
    const [server, any] = [PURPOSES.server, PURPOSES.any].map((oid) =>
      issue(undefined, { extensions: [extensions.basicConstraints(true), extensions.extendedKeyUsage(oid)] }),
    ) as [Node, Node]

    expect(countChain(issueLeaf(server), [], [server])).toBe(2)
    expect(countChain(issueLeaf(server), [], [server], 'client')).toBe(0)
    expect(countChain(issueLeaf(any), [], [any], 'client')).toBe(2)
  })
})

describe('a leaf', () => {
  const root = () => issue(undefined, { keys: newKeyPair('RSA-2048') })
  const sha1 = { identifier: der.sequence(der.oid('1.2.840.113549.1.1.5'), der.nothing()), digest: 'sha1' }

  it.each([
    ['without restrictions', [], [2, 2, 2]],
    ['for servers only', [extensions.extendedKeyUsage(PURPOSES.server)], [2, 0, 0]],
    ['for code signing only', [extensions.extendedKeyUsage('1.3.6.1.5.5.7.3.3')], [2, 0, 0]],
    ['for e-mail only', [extensions.extendedKeyUsage('1.3.6.1.5.5.7.3.4')], [2, 0, 0]],
    ['for clients and servers', [extensions.extendedKeyUsage(PURPOSES.server, PURPOSES.client)], [2, 2, 2]],
    ['for any purpose', [extensions.extendedKeyUsage(PURPOSES.any)], [2, 2, 2]],
    ['whose key usage does not allow signatures', [extensions.keyUsage('keyEncipherment')], [2, 2, 0]],
    ['whose key usage allows signatures', [extensions.keyUsage('digitalSignature')], [2, 2, 2]],
    ['that is an authority', [extensions.basicConstraints(true)], [2, 2, 0]],
    ['that says to be no authority', [extensions.basicConstraints(false)], [2, 2, 2]],
    ['with an unknown critical extension', [extensions.unknown(true)], [0, 0, 0]],
  ])('%s is judged by the purpose that is asked for', (_what, own, [forAny, forClients, forNamedClients]) => {
    const issuer = root()
    const leaf = issueLeaf(issuer, { extensions: own })
    const count = (purpose?: ChainPurpose) => countChain(leaf, [], [issuer], purpose)

    expect([count(), count('client'), count('named-client')]).toEqual([forAny, forClients, forNamedClients])
  })

  it('below an authority for servers is not that of a client', () => {
    const issuer = root()
    const servers = issue(issuer, {
      extensions: [extensions.basicConstraints(true), extensions.extendedKeyUsage(PURPOSES.server)],
    })
    const leaf = issueLeaf(servers)

    expect(countChain(leaf, [servers], [issuer])).toBe(3)
    expect(countChain(leaf, [servers], [issuer], 'client')).toBe(0)
    expect(countChain(leaf, [servers], [issuer], 'named-client')).toBe(0)
  })

  it('signed with SHA-1 is not accepted, and a root that signed itself with SHA-1 is', () => {
    const old = issue(undefined, { keys: newKeyPair('RSA-2048'), algorithm: sha1 })

    expect(countChain(issueLeaf(old), [], [old])).toBe(2)
    expect(countChain(issueLeaf(old, { algorithm: sha1 }), [], [old])).toBe(0)
  })

  it('whose key is too weak, or of an unknown curve, is not accepted', () => {
    const weak = generateKeyPairSync('rsa', { modulusLength: 1024 })
    const unusual = generateKeyPairSync('ec', { namedCurve: 'secp256k1' })
    const issuer = root()

    expect([weak, unusual].map((own) => countChain(issueLeaf(issuer, { keys: own }), [], [issuer]))).toEqual([0, 0])
  })
})
