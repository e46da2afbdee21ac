// Posture checks: conditions that a machine must meet before a service policy lets its identity dial or bind.
import { type Fields, f, type Objection, toSortedSet } from '../schema/fields.ts'
import { isHexadecimal, toHexDigits } from '../schema/hexadecimal.ts'
import { EMPTY_OR_NULL } from '../schema/json-forms.ts'
import { typed } from '../schema/json-schema.ts'
import { COUNT, INT32 } from '../schema/ranges.ts'
import { isVersionRange } from '../schema/version-ranges.ts'
import { defineResource } from './define.ts'
import { semantics } from './service-policies.ts'

export const operatingSystemTypes = ['Windows', 'WindowsServer', 'Android', 'iOS', 'Linux', 'macOS'] as const
type OperatingSystemType = (typeof operatingSystemTypes)[number]

/** An operating system that is good enough; without versions, in any version. */
export interface OperatingSystemRule {
  readonly type: OperatingSystemType
  readonly versions?: readonly string[] | null
}

/** A program that must run; with hashes or fingerprints, only as one of those. */
export interface ProcessRule {
  readonly osType: OperatingSystemType
  readonly path: string
  readonly hashes?: readonly string[] | null
  readonly signerFingerprints?: readonly string[] | null
}

const texts = { type: ['array', 'null'], items: { type: 'string' } }
const osType = { type: 'string', enum: operatingSystemTypes }

const acceptedSystems = typed<OperatingSystemRule[]>({
  type: 'array',
  minItems: 1,
  items: { type: 'object', required: ['type'], properties: { type: osType, versions: texts } },
})

const wantedProcesses = typed<ProcessRule[]>({
  type: 'array',
  minItems: 1,
  items: {
    type: 'object',
    required: ['osType', 'path'],
    properties: { osType, path: { type: 'string' }, hashes: texts, signerFingerprints: texts },
  },
})

function badRange(systems: readonly OperatingSystemRule[]): Objection | undefined {
  const bad = systems.flatMap(({ versions }) => versions ?? []).find((range) => !isVersionRange(range))
  return bad === undefined ? undefined : { reason: 'has a version range that cannot be read', value: bad }
}

function badHex(processes: readonly ProcessRule[]): Objection | undefined {
  const written = processes.flatMap(({ hashes, signerFingerprints }) => [
    ...(hashes ?? []),
    ...(signerFingerprints ?? []),
  ])
  const bad = written.find((one) => !isHexadecimal(one))
  return bad === undefined ? undefined : { reason: 'has a hash or fingerprint that is not hexadecimal', value: bad }
}

/** One entry a key, the last one of several, in the order of the keys. */
function byKey<T>(entries: readonly T[], keyOf: (entry: T) => string): T[] {
  const lastByKey = new Map(entries.map((entry) => [keyOf(entry), entry]))
  return toSortedSet([...lastByKey.keys()]).flatMap((key) => lastByKey.get(key) ?? [])
}

const hexSet = (values: readonly string[] | null | undefined) => toSortedSet((values ?? []).map(toHexDigits))

/** By type: what a check of that type is described by besides what all are. */
const variants = {
  OS: {
    operatingSystems: f.json(acceptedSystems, {
      required: true,
      objection: badRange,
      normalize: (systems) =>
        byKey(
          systems.map(({ type, versions }) => ({ type, versions: toSortedSet(versions ?? []) })),
          ({ type }) => type,
        ),
      // Inside of a text, the quotation marks would be escaped.
      toJson: (stored) => stored.replaceAll('"versions":[]', `"versions":${EMPTY_OR_NULL}`),
      summary:
        'The operating systems that pass, such as [{"type":"Windows","versions":[">=10.0.0 <11.0.0"]}]; without versions, any version passes.',
    }),
  },
  PROCESS: {
    process: f.object(
      {
        osType: f.choice(operatingSystemTypes, {
          required: true,
          summary: 'The operating system of the machine on which the program must run.',
        }),
        path: f.text({ required: true, summary: 'The path of the program on that machine.' }),
        hashes: f.hexStrings({
          compatibleEmpty: 'null',
          summary:
            'SHA-512 of the program, in hexadecimal: one of them must match. Without any, every program at the path passes.',
        }),
        signerFingerprint: f.hex({
          nullable: true,
          omitNull: true,
          summary: 'SHA-1 of the certificate that must have signed the program, in hexadecimal.',
        }),
      },
      { required: true, summary: 'The program that must run.' },
    ),
  },
  PROCESS_MULTI: {
    semantic: f.choice(semantics, {
      required: true,
      summary: 'AllOf: all programs must run; AnyOf: one of them must.',
    }),
    processes: f.json(wantedProcesses, {
      required: true,
      objection: badHex,
      normalize: (processes) =>
        byKey(
          processes.map(({ osType, path, hashes, signerFingerprints }) => ({
            osType,
            path,
            hashes: hexSet(hashes),
            signerFingerprints: hexSet(signerFingerprints),
          })),
          ({ osType, path }) => `${osType}-${path}`,
        ),
      summary:
        'The programs, such as [{"osType":"Linux","path":"/usr/sbin/agent"}]; hashes (SHA-512) and signerFingerprints (SHA-1) can be added.',
    }),
  },
  DOMAIN: {
    domains: f.strings({
      required: true,
      minItems: 1,
      summary: 'The domains that pass: the machine must be joined to one of them.',
    }),
  },
  MAC: {
    macAddresses: f.hexStrings({
      required: true,
      minItems: 1,
      summary: 'The MAC addresses that pass: the machine must have one of them.',
    }),
  },
  MFA: {
    timeoutSeconds: f.int({
      ...INT32,
      default: -1,
      acceptsNull: 'patch',
      normalize: (seconds) => (seconds <= 0 ? -1 : seconds),
      summary: 'For how many seconds a one-time code counts; -1: until the session ends.',
    }),
    promptOnWake: f.bool({
      acceptsNull: 'patch',
      filter: true,
      summary: 'Whether another one-time code is required within five minutes after the machine woke.',
    }),
    promptOnUnlock: f.bool({
      acceptsNull: 'patch',
      filter: true,
      summary: 'Whether another one-time code is required within five minutes after the machine was unlocked.',
    }),
    ignoreLegacyEndpoints: f.bool({
      acceptsNull: 'patch',
      summary:
        'Whether clients that are too old to prompt for another one-time code are shown no timeout; it applies to them all the same.',
    }),
  },
} satisfies Record<string, Fields>

export const postureChecks = defineResource({
  name: 'posture-check',
  plural: 'posture-checks',
  summary: 'A condition that a machine must meet before a policy admits its identity.',
  fields: {
    name: f.name(),
    roleAttributes: f.roleAttributes({ acceptsNull: true, summary: 'Attributes by which policies find this check.' }),
    version: f.int({ ...COUNT, access: 'read', default: 1 }),
  },
  variants,
  variantBodies: {
    postureCheckOperatingSystem: 'OS',
    postureCheckProcess: 'PROCESS',
    postureCheckProcessMulti: 'PROCESS_MULTI',
    postureCheckDomain: 'DOMAIN',
    postureCheckMacAddress: 'MAC',
    postureCheckMfa: 'MFA',
  },
  columns: ['id', 'name', 'typeId', 'roleAttributes'],
  example: {
    create: { name: 'company-domain', typeId: 'DOMAIN', domains: ['corp.example.com'] },
    filter: 'typeId = "MFA"',
  },
})
