// Converts identities, and what they sign in with.
import { X509Certificate } from 'node:crypto'
import { toNameKey } from '../authentication/authorities/authority-certificates.ts'
import { toCertificateFields } from '../authentication/credentials/authenticator-behavior.ts'
import { foldUsername } from '../authentication/credentials/usernames.ts'
import { parseWord } from '../definitions/permissions/words.ts'
import { authPolicies } from '../definitions/resources/auth-policies.ts'
import { anyUsernameLength, authenticators } from '../definitions/resources/authenticators.ts'
import { cas } from '../definitions/resources/cas.ts'
import { enrollments } from '../definitions/resources/enrollments.ts'
import { externalJwtSigners, NO_DATE } from '../definitions/resources/external-jwt-signers.ts'
import { identities, precedences } from '../definitions/resources/identities.ts'
import { identityTypeIds } from '../definitions/resources/identity-types.ts'
import { mfaEnrollments } from '../definitions/resources/mfa-enrollments.ts'
import { serviceConfigs } from '../definitions/resources/service-configs.ts'
import { isUuid, newId, newToken } from '../foundation/ids.ts'
import {
  computeFingerprint,
  computeFingerprint256,
  type EncodedCertificate,
  readFacts,
  readNotBefore,
  toCertificatePem,
} from '../pki/certificates.ts'
import { buildChain } from '../pki/chains.ts'
import { DerError } from '../pki/der.ts'
import { parsePemBlocks } from '../pki/pem.ts'
import type { Conversion, ConvertedRecord, KindConversion } from './conversion.ts'
import type { SourceRecord } from './source-records.ts'

/** The cost of all password hashes of OpenZiti's controller, which stores none with them. */
const PASSWORD_PARAMETERS = '$argon2id$v=19$m=3072,t=1,p=4'

export const signerConversion: KindConversion = {
  kind: 'externalJwtSigners',
  convert(id, record, conversion) {
    const [certPem, jwksEndpoint] = [record.text('certPem') || null, record.text('jwksEndpoint') || null]
    if ((certPem === null) === (jwksEndpoint === null)) {
      conversion.note('externalJwtSigners', id, record, 'has no source of keys, or two: it is left out')
      return []
    }
    for (const flag of ['enrollToCertEnabled', 'enrollToTokenEnabled'])
      if (record.flag(flag))
        conversion.note('externalJwtSigners', id, record, `${flag} is set: its tokens do not enroll here`)
    const pointer = record.text('claimsProperty') ?? ''
    const claimsProperty = /^\/[^/]+$/.test(pointer) ? pointer.slice(1) : pointer
    if (claimsProperty.startsWith('/'))
      conversion.note(
        'externalJwtSigners',
        id,
        record,
        `finds identities by ${pointer}, inside of a claim: its tokens are refused`,
      )
    const fields = {
      name: record.text('name'),
      issuer: record.text('issuer'),
      audience: record.text('audience') || null,
      enabled: record.flag('enabled'),
      certPem,
      jwksEndpoint,
      kid: record.text('kid') || null,
      ...(claimsProperty === '' ? {} : { claimsProperty }),
      useExternalId: record.flag('useExternalId'),
      targetToken: record.text('targetToken') || 'ACCESS',
      clientId: record.text('clientId') || null,
      externalAuthUrl: record.text('externalAuthUrl') || null,
      scopes: record.set('scopes'),
      commonName: record.text('commonName') ?? '',
      fingerprint: record.text('fingerprint') || null,
      notBefore: record.time('notBefore') ?? NO_DATE,
      notAfter: record.time('notAfter') ?? NO_DATE,
    }
    return [{ resource: externalJwtSigners, id, fields }]
  },
}

export const authPolicyConversion: KindConversion = {
  kind: 'authPolicies',
  convert(id, record, conversion) {
    const signers = record.set('primary.extJwt.allowedSigners')
    const allowedSigners = conversion.keepIds('authPolicies', id, record, 'external-jwt-signers', signers)
    const requiredSigner = record.text('secondary.requireExtJwtSigner') || null
    const isMoreTolerant =
      (signers.length > 0 && allowedSigners.length === 0) ||
      (requiredSigner !== null && !conversion.hasId('external-jwt-signers', requiredSigner))
    if (isMoreTolerant) {
      const problem = 'requires a signer that is not adopted: it is left out, and its identities are disabled'
      conversion.note('authPolicies', id, record, problem)
      return []
    }
    const number = (name: string) => record.number(`primary.updb.${name}`) ?? 0
    const flag = (name: string) => record.flag(name)
    const fields = {
      name: record.text('name'),
      primary: {
        cert: { allowed: flag('primary.cert.allowed'), allowExpiredCerts: flag('primary.cert.allowExpiredCerts') },
        extJwt: { allowed: flag('primary.extJwt.allowed'), allowedSigners },
        updb: {
          allowed: flag('primary.updb.allowed'),
          minPasswordLength: Math.max(number('minPasswordLength'), 5),
          requireSpecialChar: flag('primary.updb.requireSpecialChar'),
          requireNumberChar: flag('primary.updb.requireNumberChar'),
          requireMixedCase: flag('primary.updb.requireMixedCase'),
          maxAttempts: Math.max(number('maxAttempts'), 0),
          lockoutDurationMinutes: Math.max(number('lockoutDurationMinutes'), 0),
        },
      },
      secondary: { requireTotp: flag('secondary.requireTotp'), requireExtJwtSigner: requiredSigner },
    }
    return [{ resource: authPolicies, id, fields }]
  },
}

/** Authorities that operators brought. Each conversion is for one adoption, because it collects their certificates. */
export function createCredentialConversions(): Readonly<Record<'cas' | 'authenticators', KindConversion>> {
  const authorities = new Map<string, readonly X509Certificate[]>()
  return {
    cas: {
      kind: 'cas',
      convert(id, record, conversion) {
        const certificates = readStoredCertificates(record.text('certPem'))
        const [anchor] = certificates
        if (!anchor) {
          conversion.note('cas', id, record, 'has a certificate that cannot be read: it is left out')
          return []
        }
        authorities.set(id, certificates)
        const isPending = !record.flag('isVerified') && !isUuid(record.text('verificationToken') ?? '')
        if (isPending)
          conversion.note(
            'cas',
            id,
            record,
            'is not verified, and has another verification token: the public contract requires a UUID',
          )
        return [{ resource: cas, id, fields: toAuthorityFields(record, anchor) }]
      },
    },
    authenticators: {
      kind: 'authenticators',
      convert(id, record, conversion) {
        const common = { identityId: record.text('identity'), method: record.text('method') }
        const own = record.text('method') === 'updb' ? toPassword(record) : toCertificate(record, authorities)
        if (typeof own === 'object') return [{ resource: authenticators, id, fields: { ...common, ...own } }]
        conversion.note('authenticators', id, record, `of the identity ${common.identityId}: ${own}`)
        return []
      },
    },
  }
}

function toAuthorityFields(record: SourceRecord, anchor: X509Certificate): Record<string, unknown> {
  const token = record.text('verificationToken') ?? ''
  const claim = record.part('externalIdClaim')
  const member = (name: string) => claim?.text(`externalIdClaim.${name}`) ?? ''
  return {
    name: record.text('name'),
    certPem: record.text('certPem'),
    fingerprint: computeFingerprint(anchor),
    fingerprint256: computeFingerprint256(anchor),
    subject: toNameKey(anchor.subject),
    isVerified: record.flag('isVerified'),
    verificationToken: isUuid(token) ? token : newToken(),
    isAuthEnabled: record.flag('isAuthEnabled'),
    isOttCaEnrollmentEnabled: record.flag('isOttCaEnrollmentEnabled'),
    isAutoCaEnrollmentEnabled: record.flag('isAutoCaEnrollmentEnabled'),
    identityRoles: record.set('identityRoles'),
    identityNameFormat: record.text('identityNameFormat') ?? '',
    externalIdClaim: claim && {
      location: member('location'),
      matcher: member('matcher'),
      matcherCriteria: member('matcherCriteria'),
      parser: member('parser'),
      parserCriteria: member('parserSeparator'),
      index: claim.number('externalIdClaim.index') ?? 0,
    },
  }
}

/** The fields of a password, or the reason for which it cannot be adopted. */
function toPassword(record: SourceRecord): Record<string, unknown> | string {
  const [username, hash, salt] = [record.text('updbUsername'), record.text('updbPassword'), record.text('updbSalt')]
  if (!username || !hash || !salt) return 'it has no username, or no password: it is left out'
  const { maxLength } = anyUsernameLength
  if (username.length > maxLength) return `its username is longer than ${String(maxLength)} characters: it is left out`
  const unpadded = (base64: string) => base64.replace(/={1,2}$/, '')
  const passwordHash = `${PASSWORD_PARAMETERS}$${unpadded(salt)}$${unpadded(hash)}`
  return { username, foldedUsername: foldUsername(username), passwordHash }
}

/** The fields of a certificate, or the reason for which it cannot be adopted. */
function toCertificate(
  record: SourceRecord,
  authorities: ReadonlyMap<string, readonly X509Certificate[]>,
): Record<string, unknown> | string {
  const isIssuedByNetwork = record.flag('isIssuedByNetwork')
  const leaf = readLeaf(record.text('certPem'))
  if (!leaf) return 'its certificate cannot be read: it has to enroll again'
  const caId = isIssuedByNetwork ? null : findAuthority(leaf, authorities)
  if (caId === undefined) return 'no authority of the network issued its certificate: it has to enroll again'
  return {
    ...toCertificateFields(leaf),
    caId,
    isIssuedByNetwork,
    isExtendRequested: record.flag('isExtendRequested'),
    isKeyRollRequested: record.flag('isKeyRollRequested'),
    extendRequestedAt: record.time('extendRequestedAt'),
    lastAuthResolvedToRoot: record.flag('lastAuthResolvedToRoot'),
    unverifiedCertPem: record.text('unverifiedCertPem') || null,
  }
}

function findAuthority(
  encoded: EncodedCertificate,
  authorities: ReadonlyMap<string, readonly X509Certificate[]>,
): string | undefined {
  const [leaf] = readStoredCertificates(toCertificatePem(encoded))
  if (!leaf) return undefined
  for (const [id, [anchor, ...others]] of authorities)
    if (anchor && buildChain(leaf, others, [anchor], { now: readNotBefore(leaf), ignoreLeafDates: true })) return id
  return undefined
}

/** The first certificate, which OpenSSL does not parse: that takes longer than all other work for its record. */
function readLeaf(pem: string | null): EncodedCertificate | undefined {
  const [block] = parsePemBlocks(pem ?? '')
  if (!block) return undefined
  const leaf = { raw: block.bytes }
  try {
    readFacts(leaf)
    return leaf
  } catch (error) {
    if (error instanceof DerError) return undefined
    throw error
  }
}

/** Returns none if one of them cannot be read. */
export function readStoredCertificates(pem: string | null): X509Certificate[] {
  try {
    return parsePemBlocks(pem ?? '').map(({ bytes }) => new X509Certificate(bytes))
  } catch {
    return []
  }
}

const ENVIRONMENT = {
  arch: 'Arch',
  domain: 'Domain',
  hostname: 'Hostname',
  os: 'Os',
  osRelease: 'Release',
  osVersion: 'Version',
}
const SDK = {
  appId: 'AppId',
  appVersion: 'AppVersion',
  branch: 'Branch',
  revision: 'Revision',
  type: 'Type',
  version: 'Version',
}

export const identityConversion: KindConversion = {
  kind: 'identities',
  convert(id, record, conversion) {
    const policyId = record.text('authPolicyId') || 'default'
    const hasPolicy = conversion.hasId('auth-policies', policyId)
    if (!hasPolicy)
      conversion.note('identities', id, record, `its auth policy ${policyId} is not adopted: the identity is disabled`)
    const typeId = record.text('type') ?? ''
    const serviceHostingCosts = pickServices(record.map('serviceHostingCosts'), conversion, Number)
    const serviceHostingPrecedences = pickServices(record.map('serviceHostingPrecedences'), conversion, toPrecedence)
    const fields = {
      name: record.text('name'),
      typeId: (identityTypeIds as readonly string[]).includes(typeId) ? typeId : 'Default',
      isAdmin: record.flag('isAdmin'),
      isDefaultAdmin: record.flag('isDefaultAdmin'),
      authPolicyId: hasPolicy ? policyId : 'default',
      externalId: record.text('externalId') || null,
      roleAttributes: record.set('roleAttributes'),
      permissions: keepPermissions(id, record, conversion),
      appData: conversion.keepScalars('identities', id, record, 'appData'),
      defaultHostingCost: record.number('defaultHostingCost') ?? 0,
      defaultHostingPrecedence: toPrecedence(record.number('defaultHostingPrecedence') ?? 0),
      serviceHostingCosts,
      serviceHostingPrecedences,
      hostedServices: [
        ...new Set([...Object.keys(serviceHostingCosts), ...Object.keys(serviceHostingPrecedences)]),
      ].sort(),
      disabledAt: hasPolicy ? record.time('disabledAt') : conversion.now,
      disabledUntil: hasPolicy ? record.time('disabledUntil') : null,
      envInfo: pickTexts(record, 'envInfo', ENVIRONMENT),
      sdkInfo: pickTexts(record, 'sdkInfo', SDK),
    }
    return [{ resource: identities, id, fields }, ...convertServiceConfigs(id, record, conversion)]
  },
}

/** The permissions that exist here, which release 2.0 has too. An identity without one of them may do less. */
function keepPermissions(id: string, record: SourceRecord, conversion: Conversion): string[] {
  return record.set('permissions').filter((word) => {
    if (parseWord(word)) return true
    conversion.note('identities', id, record, `its permission ${word} does not exist here: it is left out`)
    return false
  })
}

function pickTexts(record: SourceRecord, prefix: string, members: Readonly<Record<string, string>>) {
  const entries = Object.entries(members).map(([name, suffix]) => [name, record.text(prefix + suffix)] as const)
  return Object.fromEntries(entries.filter(([, value]) => value))
}

function pickServices<V>(map: object, conversion: Conversion, convert: (value: unknown) => V): Record<string, V> {
  const entries = Object.entries(map).filter(([serviceId]) => conversion.hasId('services', serviceId))
  return Object.fromEntries(entries.map(([serviceId, value]) => [serviceId, convert(value)]))
}

function toPrecedence(value: unknown): string {
  return precedences[Number(value)] ?? 'default'
}

/** The configs that an identity gets for single services. */
function convertServiceConfigs(identityId: string, record: SourceRecord, conversion: Conversion): ConvertedRecord[] {
  return record.parts('serviceConfigs').flatMap(([serviceId, part]) =>
    part.names().flatMap((configTypeId) => {
      const configId = part.text(configTypeId)
      if (!conversion.hasId('services', serviceId) || !conversion.hasId('configs', configId)) {
        conversion.note(
          'identities',
          identityId,
          record,
          `its config for the service ${serviceId} does not exist: it is left out`,
        )
        return []
      }
      return [{ resource: serviceConfigs, id: newId(), fields: { identityId, serviceId, configTypeId, configId } }]
    }),
  )
}

export const enrollmentConversion: KindConversion = {
  kind: 'enrollments',
  convert(id, record) {
    const fields = {
      identityId: record.text('identity') || null,
      edgeRouterId: record.text('edgeRouter') || null,
      transitRouterId: record.text('transitRouter') || null,
      method: record.text('method'),
      expiresAt: record.time('expiresAt') ?? 0,
      username: record.text('username') || null,
      caId: record.text('caId') || null,
      token: record.text('token'),
    }
    return [{ resource: enrollments, id, fields }]
  },
}

export const mfaConversion: KindConversion = {
  kind: 'mfas',
  convert(id, record, { encrypt }) {
    const place = (field: string) => ({ resource: mfaEnrollments.plural, id, field })
    const fields = {
      identityId: record.text('identity'),
      isVerified: record.flag('isVerified'),
      encryptedSecret: encrypt(record.text('secret') ?? '', place('encryptedSecret')),
      encryptedRecoveryCodes: encrypt(JSON.stringify(record.set('recoveryCodes')), place('encryptedRecoveryCodes')),
    }
    return [{ resource: mfaEnrollments, id, fields }]
  },
}
