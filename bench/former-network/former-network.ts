// A network as OpenZiti's controller leaves it: its database, its certificates and its configuration. It has the records of a model,
// the links that policies make between them, and a certificate for each identity.
import { generateKeyPairSync } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Authority } from '../../src/pki/authority.ts'
import {
  computeFingerprint,
  computePublicKeyPrint,
  encodeCertificate,
  toCertificatePem,
} from '../../src/pki/certificates.ts'
import { encodeCommonName } from '../../src/pki/names.ts'
import {
  edgeRouterBody,
  edgeRouterPolicyBody,
  identityBody,
  identityName,
  serviceBody,
  serviceEdgeRouterPolicyBody,
  servicePolicyBody,
} from '../model/records.ts'
import type { Model } from '../model/sizes.ts'
import { type BucketContent, writeBoltFile } from './bolt-writer.ts'
import { encodeCounted, encodeRecord, encodeSet, type Scalar } from './typed-values.ts'

/** The layout of release 1.6.5. */
const SCHEMA = 39
const ADDRESS = '127.0.0.1:14280'
const HOUR_MS = 3_600_000
const YEAR_MS = 365 * 24 * HOUR_MS
const CREATED = new Date()
const ADMINISTRATOR = 'administrator'
/** The number that stands for the type of a policy. */
const DIAL = 1
const DEFAULT_POLICY = {
  name: 'Default',
  isSystem: true,
  'primary.cert.allowed': true,
  'primary.cert.allowExpiredCerts': true,
  'primary.updb.allowed': true,
  'primary.updb.minPasswordLength': 5,
  'primary.extJwt.allowed': true,
}
/** The description that a device sends when it signs in. */
const DEVICE = {
  envInfoArch: 'amd64',
  envInfoOs: 'linux',
  envInfoRelease: '6.8.0-45-generic',
  envInfoVersion: '#45-Ubuntu SMP PREEMPT_DYNAMIC',
  envInfoHostname: 'workstation.example.com',
  envInfoDomain: '',
  sdkInfoType: 'ziti-sdk-golang',
  sdkInfoVersion: 'v1.1.2',
  sdkInfoBranch: 'main',
  sdkInfoRevision: 'abcdef0',
  sdkInfoAppId: 'ziti',
  sdkInfoAppVersion: 'v1.6.5',
}

type Kind = readonly [name: string, records: BucketContent]

/** A policy with the records that it leads to. */
interface LinkedPolicy {
  readonly id: string
  readonly subjectRoles: readonly string[]
  readonly targetIds: readonly string[]
}

interface Bearer {
  readonly id: string
  readonly roleAttributes: readonly string[]
}

/** Writes the files of a network into a directory. Returns the path of the configuration. */
export function writeFormerNetwork(directory: string, model: Model): string {
  const pki = join(directory, 'pki')
  Authority.make(pki, ['localhost', '127.0.0.1'], Date.now())
  const configuration = join(directory, 'controller.json')
  writeFileSync(configuration, JSON.stringify(describeController(directory, pki)))
  writeBoltFile(join(directory, 'ctrl.db'), [['ziti', listKinds(model, Authority.load(pki))]])
  return configuration
}

/** JSON is YAML. */
function describeController(directory: string, pki: string) {
  const [certificate, key] = [join(pki, 'server.crt'), join(pki, 'server.key')]
  const identity = { cert: certificate, server_cert: certificate, key, ca: join(pki, 'root.crt') }
  const signingCert = { cert: join(pki, 'intermediate.crt'), key: join(pki, 'intermediate.key') }
  const apis = ['edge-client', 'edge-management', 'fabric'].map((binding) => ({ binding }))
  return {
    v: 3,
    db: join(directory, 'ctrl.db'),
    identity,
    ctrl: { listener: `tls:${ADDRESS}`, options: { advertiseAddress: `tls:${ADDRESS}` } },
    edge: { api: { address: ADDRESS }, enrollment: { signingCert } },
    web: [{ name: 'all', bindPoints: [{ interface: ADDRESS, address: ADDRESS }], identity, apis }],
  }
}

function listKinds(model: Model, authority: Authority): Kind[] {
  const list = <B extends object>(count: number, prefix: string, toBody: (at: number, model: Model) => B) =>
    Array.from({ length: count }, (_, at) => ({ id: `${prefix}${at}`, ...toBody(at, model) }))
  const services = list(model.services, 'service', serviceBody)
  const routers = list(model.edgeRouters, 'router', edgeRouterBody)
  const servicePolicies = list(model.policies, 'dial', servicePolicyBody)
  const routerPolicies = list(model.policies, 'use', edgeRouterPolicyBody)
  const link = (
    id: string,
    subjectRoles: readonly string[],
    targetRoles: readonly string[],
    all: readonly Bearer[],
  ) => ({
    id,
    subjectRoles,
    targetIds: all.filter((bearer) => hasRole(bearer, targetRoles)).map((bearer) => bearer.id),
  })
  const dial = servicePolicies.map((each) => link(each.id, each.identityRoles, each.serviceRoles, services))
  const use = routerPolicies.map((each) => link(each.id, each.identityRoles, each.edgeRouterRoles, routers))
  return [
    ['versions', [['edge', encodeInt64(SCHEMA)]]],
    ['authPolicies', [['default', encodeBody(DEFAULT_POLICY)]]],
    ['services', services.map((service) => [service.id, encodeService(service, routers)] as const)],
    ['routers', routers.map((router) => [router.id, encodeRouter(router)] as const)],
    ['identities', listIdentities(model, dial, use)],
    ['authenticators', listAuthenticators(model, authority)],
    ['servicePolicies', servicePolicies.map((policy) => [policy.id, encodeBody({ ...policy, type: DIAL })] as const)],
    ['edgeRouterPolicies', routerPolicies.map((policy) => [policy.id, encodeBody(policy)] as const)],
    ['serviceEdgeRouterPolicies', [['everywhere', encodeBody(serviceEdgeRouterPolicyBody)]]],
  ]
}

function hasRole({ roleAttributes }: Bearer, roles: readonly string[]): boolean {
  return roleAttributes.some((attribute) => roles.includes(`#${attribute}`))
}

/** The record of a body: its members, lists as sets. */
function encodeBody(body: Readonly<Record<string, unknown>>, parts: Readonly<Record<string, BucketContent>> = {}) {
  const { id: _, ...members } = body
  const values = Object.entries(members).map(([name, value]) => [
    name,
    Array.isArray(value) ? encodeSet(value) : (value as Scalar),
  ])
  return encodeRecord({ ...Object.fromEntries(values), createdAt: CREATED, updatedAt: CREATED, tags: [], ...parts })
}

function encodeService(
  { name, encryptionRequired, roleAttributes }: ReturnType<typeof serviceBody>,
  routers: readonly Bearer[],
) {
  const edge = {
    name,
    encryptionRequired,
    roleAttributes: encodeSet(roleAttributes),
    configs: [],
    edgeRouters: encodeCounted(routers.map(({ id }) => id)),
  }
  return encodeBody({ name, terminatorStrategy: 'smartrouting' }, { edge: encodeRecord(edge) })
}

function encodeRouter({ name, roleAttributes }: ReturnType<typeof edgeRouterBody>) {
  const edge = { isVerified: false, isTunnelerEnabled: false, roleAttributes: encodeSet(roleAttributes), appData: [] }
  return encodeBody({ name, cost: 0, noTraversal: false, disabled: false }, { edge: encodeRecord(edge) })
}

/** The identities, and an administrator who signs in with a password. */
function* listIdentities(model: Model, dial: readonly LinkedPolicy[], use: readonly LinkedPolicy[]) {
  const links = (bearer: Bearer, policies: readonly LinkedPolicy[]) => {
    const granting = policies.filter(({ subjectRoles }) => hasRole(bearer, subjectRoles))
    return { ids: granting.map(({ id }) => id), targetIds: new Set(granting.flatMap(({ targetIds }) => targetIds)) }
  }
  const common = { type: 'Default', authPolicyId: 'default', defaultHostingCost: 0, defaultHostingPrecedence: 0 }
  yield [ADMINISTRATOR, encodeBody({ name: 'Default Admin', ...common, isAdmin: true, isDefaultAdmin: true })] as const
  for (let at = 0; at < model.identities; at += 1) {
    const { name, isAdmin, roleAttributes } = identityBody(identityName(at), at, model)
    const [services, routers] = [links({ id: name, roleAttributes }, dial), links({ id: name, roleAttributes }, use)]
    const body = { name, ...common, isAdmin, isDefaultAdmin: false, roleAttributes, authenticators: [`${name}-cert`] }
    const parts = {
      servicePolicies: encodeSet(services.ids),
      edgeRouterPolicies: encodeSet(routers.ids),
      dialServices: encodeCounted(services.targetIds),
      routers: encodeCounted(routers.targetIds),
      appData: [],
      interfaces: [],
      serviceConfigs: [],
      serviceHostingCosts: [],
      serviceHostingPrecedences: [],
    }
    yield [name, encodeBody({ ...body, ...DEVICE }, parts)] as const
  }
}

/** All keys are one, which saves the time to make them. */
function* listAuthenticators({ identities }: Model, { intermediate }: Authority) {
  const password = {
    updbUsername: 'admin',
    updbPassword: Buffer.alloc(32).toString('base64'),
    updbSalt: 'AAAAAAAAAAAAAA==',
  }
  yield [ADMINISTRATOR, encodeBody({ method: 'updb', identity: ADMINISTRATOR, ...password })] as const
  const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const publicKeyInfo = publicKey.export({ type: 'spki', format: 'der' })
  const dates = { notBefore: CREATED.getTime() - HOUR_MS, notAfter: CREATED.getTime() + YEAR_MS }
  for (let at = 0; at < identities; at += 1) {
    const identity = identityName(at)
    const subject = encodeCommonName(identity)
    const certificate = encodeCertificate({ purpose: 'client', subject, publicKeyInfo, ...dates }, intermediate)
    const body = {
      method: 'cert',
      identity,
      certPem: toCertificatePem(certificate),
      certFingerprint: computeFingerprint(certificate),
      publicKeyPrint: computePublicKeyPrint(certificate),
      isIssuedByNetwork: true,
      isExtendRequested: false,
      isKeyRollRequested: false,
      lastAuthResolvedToRoot: true,
    }
    yield [`${identity}-cert`, encodeBody(body)] as const
  }
}

function encodeInt64(value: number): Buffer {
  const bytes = Buffer.alloc(9, 3)
  bytes.writeBigInt64LE(BigInt(value), 1)
  return bytes
}
