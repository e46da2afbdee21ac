// Every record of the former databases, member by member, compared with what the adopted network responds.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { getDataPaths } from '../../src/settings/data-directory.ts'
import { loadSecretCipher } from '../../src/storage/secrets/key-files.ts'
import { MANAGEMENT, TestClock } from '../world/controller.ts'
import { useController } from '../world/use-controller.ts'
import { listDifferences } from './differences.ts'
import { adoptFixture, NETWORK_TIME, type NetworkName, readNetworkJson } from './networks.ts'

// biome-ignore lint/suspicious/noExplicitAny: records of another program
type AnyRecord = Record<string, any>

const folder = mkdtempSync(join(tmpdir(), 'records-'))
afterAll(() => rmSync(folder, { recursive: true }))

/** Kinds that are not adopted, and why. */
const LEFT_OUT: Readonly<Record<string, string>> = {
  apiSessions: 'sessions end at the switch',
  apiSessionCertificates: 'sessions end at the switch',
  sessions: 'sessions end at the switch',
  revocations: 'they are about sessions',
  controllers: 'one controller continues the network',
  eventualEvents: 'work that the former controller had planned for itself',
  identityTypes: 'built in',
  postureCheckTypes: 'built in',
  indexes: 'derived from the records',
  metadata: 'of the log of a cluster',
  versions: 'of the layout',
}

/** Members that are the other side of a reference, by any kind. */
const DERIVED: ReadonlySet<string> = new Set([
  ...['authenticators', 'enrollments', 'identities', 'services', 'routers', 'configs', 'terminators', 'postureChecks'],
  ...['edgeRouters', 'edgeRouterPolicies', 'servicePolicies', 'serviceEdgeRouterPolicies', 'identityServices'],
  ...['bindServices', 'dialServices', 'bindIdentities', 'dialIdentities'],
])

const PRECEDENCES = ['default', 'required', 'failed']

interface Expectation {
  /** The list that has the record. */
  readonly path: string
  readonly members: AnyRecord
  /** Columns that no API shows. */
  readonly stored?: { readonly table: 'authenticators' | 'terminators'; readonly columns: AnyRecord }
}

/** Reads members that are not compared, for the reason beside them. */
const skip = (..._members: readonly unknown[]): undefined => undefined

const toTime = (value: string | null | undefined) => (value ? `${value.slice(0, 23)}Z` : null)
const mapValues = (map: AnyRecord, convert: (value: unknown) => unknown) =>
  Object.fromEntries(Object.entries(map).map(([key, value]) => [key, convert(value)]))
const toPrecedence = (value: unknown) => PRECEDENCES[Number(value)]

/** The members that all kinds have. */
const toCommon = ({ name, createdAt, updatedAt, tags }: AnyRecord) => ({
  name,
  createdAt: toTime(createdAt),
  updatedAt: toTime(updatedAt),
  tags,
})

const toRoles = (record: AnyRecord, names: readonly string[]) =>
  Object.fromEntries(names.map((name) => [name, record[name]]))

/** By kind: where a record is found, and what it has there. Whatever a conversion does not read is not compared. */
const CONVERSIONS: Readonly<Record<string, (record: AnyRecord) => Expectation>> = {
  identities: (r) => ({
    path: 'identities',
    members: {
      ...toCommon(r),
      typeId: r.type,
      isAdmin: r.isAdmin,
      isDefaultAdmin: r.isDefaultAdmin,
      authPolicyId: r.authPolicyId,
      externalId: r.externalId,
      roleAttributes: r.roleAttributes,
      appData: r.appData,
      permissions: r.permissions,
      defaultHostingCost: r.defaultHostingCost,
      defaultHostingPrecedence: toPrecedence(r.defaultHostingPrecedence),
      serviceHostingCosts: r.serviceHostingCosts,
      serviceHostingPrecedences: mapValues(r.serviceHostingPrecedences, toPrecedence),
      disabled: r.disabledAt !== null,
      disabledAt: toTime(r.disabledAt),
      disabledUntil: toTime(r.disabledUntil),
      envInfo: {
        arch: r.envInfoArch,
        domain: r.envInfoDomain,
        hostname: r.envInfoHostname,
        os: r.envInfoOs,
        osRelease: r.envInfoRelease,
        osVersion: r.envInfoVersion,
      },
      sdkInfo: {
        appId: r.sdkInfoAppId,
        appVersion: r.sdkInfoAppVersion,
        branch: r.sdkInfoBranch,
        revision: r.sdkInfoRevision,
        type: r.sdkInfoType,
        version: r.sdkInfoVersion,
      },
      serviceConfigs: Object.entries(r.serviceConfigs ?? {}).flatMap(([service, configs]) =>
        Object.values(configs as AnyRecord).map((configId) => ({ serviceId: service, configId })),
      ),
      // A router's, which are shown with it.
      interfaces: skip(r.interfaces),
    },
  }),
  authenticators: (r) => ({
    path: 'authenticators',
    members: {
      ...toCommon(r),
      method: r.method,
      identityId: r.identity,
      username: r.updbUsername,
      // The leaf comes first.
      certPem: r.certPem?.split(/(?<=-----END CERTIFICATE-----\n)/)[0],
      fingerprint: r.certFingerprint,
      isIssuedByNetwork: r.isIssuedByNetwork,
      isExtendRequested: r.isExtendRequested,
      isKeyRollRequested: r.isKeyRollRequested,
      extendRequestedAt: toTime(r.extendRequestedAt),
      lastAuthResolvedToRoot: r.lastAuthResolvedToRoot,
      // Of an extension that is not confirmed; no record has one.
      unverified: skip(r.unverifiedCertPem, r.unverifiedCertFingerprint, r.lastExtendRolledKeys),
    },
    stored: {
      table: 'authenticators',
      columns: {
        passwordHash: r.updbPassword && toPasswordHash(r.updbPassword, r.updbSalt),
        // OpenZiti has it for its own certificates alone.
        publicKeyPrint: r.publicKeyPrint || undefined,
      },
    },
  }),
  enrollments: (r) => ({
    path: 'enrollments',
    members: {
      method: r.method,
      token: r.token,
      expiresAt: toTime(r.expiresAt),
      createdAt: toTime(r.issuedAt),
      identityId: r.identity,
      edgeRouterId: r.edgeRouter,
      transitRouterId: r.transitRouter,
      caId: r.caId,
      username: r.username,
      // Signed again.
      jwt: skip(r.jwt),
    },
  }),
  authPolicies: (r) => ({
    path: 'auth-policies',
    members: {
      // The record of this controller, with the settings of the former one.
      ...(r.isSystem ? { name: r.name, tags: r.tags, times: skip(r.createdAt, r.updatedAt, r.isSystem) } : toCommon(r)),
      primary: {
        cert: { allowed: r['primary.cert.allowed'], allowExpiredCerts: r['primary.cert.allowExpiredCerts'] },
        extJwt: { allowed: r['primary.extJwt.allowed'], allowedSigners: r['primary.extJwt.allowedSigners'] },
        updb: {
          allowed: r['primary.updb.allowed'],
          minPasswordLength: r['primary.updb.minPasswordLength'],
          requireSpecialChar: r['primary.updb.requireSpecialChar'],
          requireNumberChar: r['primary.updb.requireNumberChar'],
          requireMixedCase: r['primary.updb.requireMixedCase'],
          maxAttempts: r['primary.updb.maxAttempts'],
          lockoutDurationMinutes: r['primary.updb.lockoutDurationMinutes'],
        },
      },
      secondary: {
        requireTotp: r['secondary.requireTotp'],
        requireExtJwtSigner: r['secondary.requireExtJwtSigner'],
      },
    },
  }),
  externalJwtSigners: (r) => ({
    path: 'external-jwt-signers',
    members: {
      ...toCommon(r),
      ...toRoles(r, ['issuer', 'audience', 'kid', 'clientId', 'externalAuthUrl', 'certPem', 'jwksEndpoint']),
      ...toRoles(r, ['fingerprint', 'commonName', 'enabled', 'useExternalId', 'scopes', 'targetToken']),
      claimsProperty: r.claimsProperty.replace(/^\//, ''),
      // One that has no certificate is valid for no time in particular.
      notBefore: toTime(r.notBefore) ?? '0001-01-01T00:00:00.000Z',
      notAfter: toTime(r.notAfter) ?? '0001-01-01T00:00:00.000Z',
      // Tokens of signers do not enroll here.
      enroll: skip(r.enrollToCertEnabled, r.enrollToTokenEnabled, r.enrollAuthPolicyId, r.enrollNameClaimsSelector),
      attributes: skip(r.enrollAttributeClaimsSelector),
    },
  }),
  cas: (r) => ({
    path: 'cas',
    members: {
      ...toCommon(r),
      ...toRoles(r, ['certPem', 'fingerprint', 'isVerified', 'isAuthEnabled', 'isAutoCaEnrollmentEnabled']),
      ...toRoles(r, ['isOttCaEnrollmentEnabled', 'identityRoles', 'identityNameFormat']),
      externalIdClaim: r.externalIdClaim && {
        location: r.externalIdClaim['externalIdClaim.location'],
        matcher: r.externalIdClaim['externalIdClaim.matcher'],
        matcherCriteria: r.externalIdClaim['externalIdClaim.matcherCriteria'],
        parser: r.externalIdClaim['externalIdClaim.parser'],
        parserCriteria: r.externalIdClaim['externalIdClaim.parserSeparator'],
        index: r.externalIdClaim['externalIdClaim.index'],
      },
      // Made again, because the public contract requires a UUID.
      verificationToken: skip(r.verificationToken),
    },
  }),
  routers: (r) => {
    const { edge, transitRouter: transit } = r
    return {
      path: edge ? 'edge-routers' : 'transit-routers',
      members: {
        ...toCommon(r),
        ...toRoles(r, ['cost', 'noTraversal', 'disabled', 'fingerprint']),
        isVerified: (edge ?? transit)?.isVerified,
        unverifiedCertPem: (edge ?? transit)?.unverifiedCertPem,
        unverifiedFingerprint: (edge ?? transit)?.unverifiedFingerprint,
        // They are shown with edge routers alone.
        interfaces: toInterfaces(r.interfaces),
        ...(edge && toRoles(edge, ['certPem', 'isTunnelerEnabled', 'roleAttributes', 'appData'])),
        // A note names them if a router has some.
        listeners: skip(r.ctrlChanListeners),
      },
    }
  },
  services: (r) => ({
    path: 'services',
    members: {
      ...toCommon(r),
      terminatorStrategy: r.terminatorStrategy,
      maxIdleTimeMillis: r.maxIdleTime / 1_000_000,
      ...toRoles(r.edge, ['name', 'encryptionRequired', 'roleAttributes', 'configs']),
    },
  }),
  configs: (r) => ({ path: 'configs', members: { ...toCommon(r), configTypeId: r.type, data: r.data } }),
  configTypes: (r) => ({
    path: 'config-types',
    // Built-in types have the times and the schema of this controller. The others are cut in the dump if they are long.
    members: BUILT_IN_TYPES.has(r.name)
      ? { name: r.name, tags: r.tags, own: skip(r.createdAt, r.updatedAt, r.schema) }
      : { ...toCommon(r), schema: typeof r.schema === 'string' ? readWholeJson(r.schema) : r.schema },
  }),
  servicePolicies: (r) => ({
    path: 'service-policies',
    members: {
      ...toCommon(r),
      type: ['', 'Dial', 'Bind'][r.type],
      ...toRoles(r, ['semantic', 'identityRoles', 'serviceRoles', 'postureCheckRoles']),
    },
  }),
  edgeRouterPolicies: (r) => ({
    path: 'edge-router-policies',
    members: {
      ...toCommon(r),
      ...toRoles(r, ['semantic', 'identityRoles', 'edgeRouterRoles']),
      isSystem: r.isSystem ?? false,
    },
  }),
  serviceEdgeRouterPolicies: (r) => ({
    path: 'service-edge-router-policies',
    members: { ...toCommon(r), ...toRoles(r, ['semantic', 'serviceRoles', 'edgeRouterRoles']) },
  }),
  postureChecks: (r) => ({
    path: 'posture-checks',
    members: {
      ...toCommon(r),
      ...toRoles(r, ['typeId', 'version', 'roleAttributes']),
      ...CHECKS[r.typeId]?.(r[r.typeId]),
    },
  }),
  terminators: (r) => ({
    path: 'terminators',
    members: {
      ...toCommon(r),
      serviceId: r.service,
      routerId: r.router,
      ...toRoles(r, ['binding', 'address', 'cost', 'precedence']),
      identity: r.instanceId,
      // No record has a saved precedence. The former controller is the source of none any more.
      former: skip(r.savedPrecedence, r.sourceCtrl),
    },
    stored: {
      table: 'terminators',
      columns: {
        hostId: r.hostId,
        isSystem: r.isSystem ? 1 : 0,
        identitySecret: r.instanceSecret && Buffer.from(r.instanceSecret, 'hex').toString('base64'),
        peerData: JSON.stringify(r.peerData ?? {}),
      },
    },
  }),
}

const BUILT_IN_TYPES: ReadonlySet<string> = new Set([
  ...['host.v1', 'host.v2', 'intercept.v1', 'ziti-tunneler-client.v1', 'ziti-tunneler-server.v1'],
])

const CHECKS: Readonly<Record<string, (details: AnyRecord) => AnyRecord>> = {
  OS: (systems) => ({
    operatingSystems: Object.values(systems).map(({ osType, osVersions }) => ({ type: osType, versions: osVersions })),
  }),
  DOMAIN: ({ domains }) => ({ domains }),
  MAC: ({ macAddresses }) => ({ macAddresses }),
  MFA: (details) => details,
  PROCESS: ({ os, path, hashes, fingerprint }) => ({
    process: { osType: os, path, hashes, signerFingerprint: fingerprint },
  }),
  PROCESS_MULTI: ({ semantic, processes }) => ({ semantic, processes: Object.values(processes) }),
}

function toPasswordHash(hash: string, salt: string): string {
  const [ownSalt, ownHash] = [salt, hash].map((text) => text.replace(/=+$/, ''))
  return `$argon2id$v=19$m=3072,t=1,p=4$${ownSalt}$${ownHash}`
}

function toInterfaces(interfaces: AnyRecord): AnyRecord[] {
  return Object.values(interfaces).map(({ name, addr, mtu, index, addrs, flags }) => ({
    name,
    mtu,
    index,
    hardwareAddress: addr,
    addresses: addrs,
    isUp: (flags & 1) !== 0,
    isLoopback: (flags & 4) !== 0,
  }))
}

function readWholeJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** A decoded value without what the decoding program wrote around it. */
function unwrap(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(unwrap)
  if (typeof value !== 'object' || value === null) return value
  const { $time, $set, $bytes, $counted } = value as AnyRecord
  return $time ?? $set ?? $bytes ?? $counted ?? mapValues(value, unwrap)
}

/** The record, and the set of its members that have not been read. */
function watch(record: AnyRecord): { watched: AnyRecord; unread: Set<string> } {
  const unread = new Set(Object.keys(record))
  const watched = new Proxy(record, {
    get(target, name) {
      unread.delete(String(name))
      return target[String(name)]
    },
  })
  return { watched, unread }
}

describe.each<NetworkName>(['1.6.5', '1.6.5-three-roots', '2.0.3'])('the network of %s', (name) => {
  const world = useController(async () => {
    const { directory } = await adoptFixture(name, folder)
    return { directory, clock: new TestClock(NETWORK_TIME) }
  })
  const dump = readNetworkJson<{ ziti: Record<string, Record<string, AnyRecord>> }>(name, 'dump').ziti
  let headers: Record<string, string>

  beforeAll(async () => {
    headers = { 'zt-session': await world.admin() }
  })

  async function list(path: string): Promise<Map<string, AnyRecord>> {
    const { body } = await world.send({ method: 'GET', path: `${MANAGEMENT}/${path}?limit=500`, headers })
    return new Map((body.data as AnyRecord[]).map((record) => [record.id, record]))
  }

  it('has kinds of records that are all adopted, or left out for a reason', () => {
    const kinds = Object.keys(dump).filter((kind) => !(kind in CONVERSIONS) && !(kind in LEFT_OUT) && kind !== 'mfas')
    expect(kinds).toEqual([])
  })

  it.each(Object.keys(CONVERSIONS))('has all members of %s', async (kind) => {
    const convert = CONVERSIONS[kind] as (record: AnyRecord) => Expectation
    const differences: string[] = []
    const lists = new Map<string, Map<string, AnyRecord>>()
    for (const [id, record] of Object.entries(dump[kind] ?? {})) {
      const { watched, unread } = watch(unwrap(record) as AnyRecord)
      const { path, members, stored } = convert(watched)
      for (const member of unread) if (!DERIVED.has(member)) differences.push(`${id} ${member} is not compared`)
      if (!lists.has(path)) lists.set(path, await list(path))
      const actual = { ...lists.get(path)?.get(id) }
      if (kind === 'identities') {
        const rows = [...(await list(`identities/${id}/service-configs`)).values()]
        actual.serviceConfigs = rows.map(({ serviceId, configId }) => ({ serviceId, configId }))
      }
      for (const [member, value] of Object.entries(members))
        if (value !== undefined) differences.push(...listDifferences(value, actual[member], `${id} ${member}`))
      if (!stored) continue
      const row = await world.controller.store.db
        .selectFrom(stored.table)
        .selectAll()
        .where('id', '=', id)
        .executeTakeFirst()
      for (const [column, value] of Object.entries(stored.columns))
        if (value !== undefined)
          differences.push(...listDifferences(value, (row as AnyRecord)[column], `${id} ${column}`))
    }
    expect(differences).toEqual([])
  })

  it('has all members of second factors', async () => {
    const cipher = loadSecretCipher(getDataPaths(world.directory))
    const rows = await world.controller.store.db.selectFrom('mfa_enrollments').selectAll().execute()
    const actual = rows.map(({ id, ...row }) => {
      const decrypt = (field: 'encryptedSecret' | 'encryptedRecoveryCodes') =>
        cipher.decrypt(row[field], { resource: 'mfa-enrollments', id, field })
      const recoveryCodes = JSON.parse(decrypt('encryptedRecoveryCodes'))
      return {
        id,
        identity: row.identityId,
        isVerified: row.isVerified === 1,
        secret: decrypt('encryptedSecret'),
        recoveryCodes,
      }
    })
    const expected = Object.entries(dump.mfas ?? {}).map(([id, record]) => {
      const { identity, isVerified, secret, recoveryCodes } = unwrap(record) as AnyRecord
      return { id, identity, isVerified, secret, recoveryCodes }
    })
    const byId = (a: { id: string }, b: { id: string }) => (a.id < b.id ? -1 : 1)
    expect(actual.sort(byId)).toEqual(expected.sort(byId))
  })
})
