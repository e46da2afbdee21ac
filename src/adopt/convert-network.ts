// Converts services, routers and policies, and what belongs to them.
import { configTypes } from '../definitions/resources/config-types.ts'
import { configs } from '../definitions/resources/configs.ts'
import { edgeRouterPolicies } from '../definitions/resources/edge-router-policies.ts'
import { edgeRouters } from '../definitions/resources/edge-routers.ts'
import { postureChecks } from '../definitions/resources/posture-checks.ts'
import { type RouterInterface, routers } from '../definitions/resources/routers.ts'
import { serviceEdgeRouterPolicies } from '../definitions/resources/service-edge-router-policies.ts'
import { servicePolicies } from '../definitions/resources/service-policies.ts'
import { services } from '../definitions/resources/services.ts'
import { terminators } from '../definitions/resources/terminators.ts'
import type { Conversion, ConvertedRecord, KindConversion } from './conversion.ts'
import type { SourceRecord } from './source-records.ts'
import type { PlainValue } from './typed-values.ts'

const NANOSECONDS_PER_MS = 1_000_000
// The flags of network interfaces, as Go's standard library numbers them.
const INTERFACE_FLAGS = { isUp: 1, isBroadcast: 2, isLoopback: 4, isMulticast: 16, isRunning: 32 } as const
const POLICY_TYPES: Readonly<Record<number, string>> = { 1: 'Dial', 2: 'Bind' }

export const configTypeConversion: KindConversion = {
  kind: 'configTypes',
  convert(id, record, conversion) {
    // Both programs have it from the beginning, and data that matches one schema matches the other.
    if (conversion.hasId('config-types', id)) return []
    const schema = parseSchema(record.text('schema'))
    if (schema === undefined) {
      conversion.note('configTypes', id, record, 'has a schema that is not JSON: it is left out')
      return []
    }
    return [{ resource: configTypes, id, fields: { name: record.text('name'), schema } }]
  },
}

/** Returns undefined if the text is not JSON, and null without one. */
function parseSchema(text: string | null): unknown {
  try {
    return text ? JSON.parse(text) : null
  } catch {
    return undefined
  }
}

export const configConversion: KindConversion = {
  kind: 'configs',
  convert(id, record) {
    const fields = { name: record.text('name'), configTypeId: record.text('type'), data: record.map('data') }
    return [{ resource: configs, id, fields }]
  },
}

export const serviceConversion: KindConversion = {
  kind: 'services',
  convert(id, record, conversion) {
    const edge = record.part('edge')
    if (!edge) {
      conversion.note(
        'services',
        id,
        record,
        'is a service of the fabric alone, which no policy governs: it is left out',
      )
      return []
    }
    const configIds = conversion.keepIds('services', id, record, 'configs', edge.set('configs'))
    const fields = {
      name: edge.text('name') ?? record.text('name'),
      roleAttributes: edge.set('roleAttributes'),
      configs: configIds,
      encryptionRequired: edge.flag('encryptionRequired'),
      maxIdleTimeMillis: Math.round((record.number('maxIdleTime') ?? 0) / NANOSECONDS_PER_MS),
      terminatorStrategy: record.text('terminatorStrategy') ?? '',
    }
    return [{ resource: services, id, fields }]
  },
}

export const routerConversion: KindConversion = {
  kind: 'routers',
  convert(id, record, conversion) {
    const edge = record.part('edge')
    const common = {
      name: record.text('name'),
      cost: record.number('cost') ?? 0,
      noTraversal: record.flag('noTraversal'),
      disabled: record.flag('disabled'),
      fingerprint: record.text('fingerprint'),
      interfaces: toInterfaces(record.map('interfaces')),
      ...toVerification(edge ?? record.part('transitRouter'), record),
    }
    if (Object.keys(record.map('ctrlChanListeners')).length > 0)
      conversion.note('routers', id, record, 'has listeners for controllers (ctrlChanListeners): they are left out')
    if (!edge) return [{ resource: routers, id, fields: common }]
    const fields = {
      ...common,
      roleAttributes: edge.set('roleAttributes'),
      isTunnelerEnabled: edge.flag('isTunnelerEnabled'),
      appData: conversion.keepScalars('routers', id, edge, 'appData'),
      certPem: edge.text('certPem'),
    }
    return [{ resource: edgeRouters, id, fields }]
  },
}

/** A router that neither enrolls nor has enrolled was made with its certificate. */
function toVerification(part: SourceRecord | undefined, record: SourceRecord) {
  if (!part) return { isVerified: record.text('fingerprint') !== null }
  return {
    isVerified: part.flag('isVerified'),
    unverifiedFingerprint: part.text('unverifiedFingerprint'),
    unverifiedCertPem: part.text('unverifiedCertPem'),
  }
}

function toInterfaces(map: Readonly<Record<string, PlainValue>>): RouterInterface[] | null {
  const interfaces = Object.values(map).map((value) => toInterface(value as Readonly<Record<string, PlainValue>>))
  return interfaces.length > 0 ? interfaces : null
}

function toInterface({ name, addr, mtu, index, flags, addrs }: Readonly<Record<string, PlainValue>>): RouterInterface {
  const bits = typeof flags === 'number' ? flags : 0
  return {
    name: String(name ?? ''),
    hardwareAddress: String(addr ?? ''),
    mtu: typeof mtu === 'number' ? mtu : 0,
    index: typeof index === 'number' ? index : 0,
    isUp: (bits & INTERFACE_FLAGS.isUp) !== 0,
    isBroadcast: (bits & INTERFACE_FLAGS.isBroadcast) !== 0,
    isLoopback: (bits & INTERFACE_FLAGS.isLoopback) !== 0,
    isMulticast: (bits & INTERFACE_FLAGS.isMulticast) !== 0,
    isRunning: (bits & INTERFACE_FLAGS.isRunning) !== 0,
    addresses: Array.isArray(addrs) ? addrs.map(String) : [],
  }
}

export const postureCheckConversion: KindConversion = {
  kind: 'postureChecks',
  convert(id, record, conversion) {
    const typeId = record.text('typeId') ?? ''
    const part = record.part(typeId)
    const details = part && toCheckDetails(typeId, part)
    const roleAttributes = record.set('roleAttributes')
    if (!details) {
      conversion.note('postureChecks', id, record, `is of the unknown type ${typeId}: it is left out`)
      return []
    }
    const fields = {
      name: record.text('name'),
      typeId,
      roleAttributes,
      ...details,
      version: record.number('version') ?? 1,
    }
    return [{ resource: postureChecks, id, fields }]
  },
}

/** By type: the members of a check of that type. */
function toCheckDetails(typeId: string, part: SourceRecord): Readonly<Record<string, unknown>> | undefined {
  switch (typeId) {
    case 'OS':
      return {
        operatingSystems: part.names().map((name) => {
          const system = part.part(name)
          return { type: system?.text('osType') ?? name, versions: system?.set('osVersions') ?? [] }
        }),
      }
    case 'DOMAIN':
      return { domains: part.set('domains') }
    case 'MAC':
      return { macAddresses: part.set('macAddresses') }
    case 'MFA':
      return {
        timeoutSeconds: part.number('timeoutSeconds') ?? -1,
        promptOnWake: part.flag('promptOnWake'),
        promptOnUnlock: part.flag('promptOnUnlock'),
        ignoreLegacyEndpoints: part.flag('ignoreLegacyEndpoints'),
      }
    case 'PROCESS':
      return {
        process: {
          osType: part.text('os'),
          path: part.text('path'),
          hashes: part.set('hashes'),
          signerFingerprint: part.text('fingerprint') || null,
        },
      }
    case 'PROCESS_MULTI':
      return {
        semantic: part.text('semantic'),
        processes: part.parts('processes').map(([, process]) => ({
          osType: process.text('osType'),
          path: process.text('path'),
          hashes: process.set('hashes'),
          signerFingerprints: process.set('signerFingerprints'),
        })),
      }
    default:
      return undefined
  }
}

export const servicePolicyConversion: KindConversion = {
  kind: 'servicePolicies',
  convert(id, record, conversion) {
    const checks = record.set('postureCheckRoles')
    const lostRole = checks.find((role) => isLostCheck(role, conversion))
    if (lostRole !== undefined) {
      const problem = `requires posture checks (${lostRole}) of which one is not adopted: it is left out, because it would grant more without it`
      conversion.note('servicePolicies', id, record, problem)
      return []
    }
    const fields = {
      name: record.text('name'),
      type: POLICY_TYPES[record.number('type') ?? 0],
      semantic: record.text('semantic'),
      identityRoles: conversion.keepRoles('servicePolicies', id, record, 'identities', 'identityRoles'),
      serviceRoles: conversion.keepRoles('servicePolicies', id, record, 'services', 'serviceRoles'),
      postureCheckRoles: checks,
    }
    return [{ resource: servicePolicies, id, fields }]
  },
}

function isLostCheck(role: string, conversion: Conversion): boolean {
  if (role.startsWith('@')) return !conversion.hasId('posture-checks', role.slice(1))
  return role === '#all' ? conversion.lostCheckRoles.size > 0 : conversion.lostCheckRoles.has(role)
}

export const edgeRouterPolicyConversion: KindConversion = {
  kind: 'edgeRouterPolicies',
  convert(id, record, conversion) {
    const fields = {
      name: record.text('name'),
      semantic: record.text('semantic'),
      identityRoles: conversion.keepRoles('edgeRouterPolicies', id, record, 'identities', 'identityRoles'),
      edgeRouterRoles: conversion.keepRoles('edgeRouterPolicies', id, record, 'edge-routers', 'edgeRouterRoles'),
      isSystem: record.flag('isSystem'),
    }
    return [{ resource: edgeRouterPolicies, id, fields }]
  },
}

export const serviceEdgeRouterPolicyConversion: KindConversion = {
  kind: 'serviceEdgeRouterPolicies',
  convert(id, record, conversion) {
    const kind = 'serviceEdgeRouterPolicies'
    const fields = {
      name: record.text('name'),
      semantic: record.text('semantic'),
      serviceRoles: conversion.keepRoles(kind, id, record, 'services', 'serviceRoles'),
      edgeRouterRoles: conversion.keepRoles(kind, id, record, 'edge-routers', 'edgeRouterRoles'),
    }
    return [{ resource: serviceEdgeRouterPolicies, id, fields }]
  },
}

export const terminatorConversion: KindConversion = {
  kind: 'terminators',
  convert(id, record): ConvertedRecord[] {
    const peerData = record
      .rawMembers('peerData')
      .filter(([key]) => key.length === 4)
      .map(([key, value]) => [String(key.readUInt32LE(0)), value.toString('base64')])
    const fields = {
      serviceId: record.text('service'),
      routerId: record.text('router'),
      binding: record.text('binding') ?? '',
      address: record.text('address'),
      cost: record.number('cost') ?? 0,
      precedence: record.text('precedence') ?? 'default',
      identity: record.text('instanceId') ?? '',
      identitySecret: record.bytes('instanceSecret')?.toString('base64') ?? null,
      hostId: record.text('hostId') ?? '',
      sessionId: '',
      peerData: Object.fromEntries(peerData),
      isSystem: record.flag('isSystem'),
    }
    return [{ resource: terminators, id, fields }]
  },
}
