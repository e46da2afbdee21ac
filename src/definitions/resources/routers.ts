// All routers: those that carry traffic onwards, and the edge routers among them, seen as what they have in common.
import { f } from '../schema/fields.ts'
import { flag, listOf, orNull, requiredObject, text, time, typed, uuid, whole } from '../schema/json-schema.ts'
import { defineResource } from './define.ts'
import { enrollmentExpiry } from './enrollments.ts'

/** The options of a router's name. */
export const routerName = { summary: 'Unique among all routers, edge routers included.' } as const

/** A network interface of a router, as routers report it. */
export interface RouterInterface {
  readonly name: string
  readonly hardwareAddress: string
  readonly mtu: number
  readonly index: number
  readonly isUp: boolean
  readonly isBroadcast: boolean
  readonly isLoopback: boolean
  readonly isMulticast: boolean
  readonly isRunning: boolean
  /** Each with the length of its network prefix: `192.0.2.7/24`. */
  readonly addresses: readonly string[]
}

export const interfaceList = typed<readonly RouterInterface[]>(
  listOf(
    requiredObject({
      name: text,
      hardwareAddress: text,
      mtu: whole,
      index: whole,
      isUp: flag,
      isBroadcast: flag,
      isLoopback: flag,
      isMulticast: flag,
      isRunning: flag,
      addresses: listOf(text),
    }),
  ),
)

/** A router's report about its software. */
export const versionInfo = requiredObject({ arch: text, buildDate: text, os: text, revision: text, version: text })

export interface VersionInfo {
  readonly arch: string
  readonly buildDate: string
  readonly os: string
  readonly revision: string
  readonly version: string
}

/** The options of a fingerprint, which routers have once they have enrolled. */
export const fingerprintOptions = { access: 'read', nullable: true, filter: true } as const

/** The fields of every router. */
export const routerFields = {
  name: f.name(routerName),
  cost: f.int({
    min: 0,
    max: 65535,
    acceptsNull: true,
    filter: true,
    summary: 'What a path through this router costs on top.',
  }),
  noTraversal: f.bool({
    acceptsNull: true,
    filter: true,
    summary: 'Whether traffic may only begin and end here, not pass through.',
  }),
  disabled: f.bool({ acceptsNull: true, filter: true, summary: 'Whether the router is kept from connecting.' }),
  isVerified: f.bool({ access: 'read', filter: true, summary: 'Whether the router has enrolled.' }),
  fingerprint: f.text(fingerprintOptions),
  unverifiedFingerprint: f.text({ access: 'read', nullable: true }),
  unverifiedCertPem: f.text({ access: 'read', nullable: true }),
  /** The certificate that the router had before it renewed it, until it connects with the new one. */
  formerFingerprint: f.text({ access: 'internal', nullable: true }),
  /** The last report of the router; kept while it is offline. */
  interfaces: f.json(interfaceList, { access: 'read', nullable: true }),
  /** The software with which it last connected. Records show it only while it is connected. */
  lastVersion: f.json(typed<VersionInfo>(versionInfo), { access: 'internal', nullable: true }),
}

/** The members by which a router enrolls: routers receive the tokens of all API sessions. */
export const routerWaysIn = { enrollmentToken: null, enrollmentJwt: null } as const

/** The inputs of a new router, for its enrollment. */
export const routerInputs = {
  enrollment: f.object(enrollmentExpiry, { access: 'create', nullable: true, summary: 'How the router enrolls.' }),
}

/** How a router that has not enrolled yet may do so. */
export const routerEnrollmentMembers = {
  enrollmentToken: { ...uuid, nullable: true },
  enrollmentJwt: { ...text, nullable: true },
  enrollmentCreatedAt: { ...time, nullable: true },
  enrollmentExpiresAt: { ...time, nullable: true },
}

const dataModel = requiredObject({
  mode: { type: 'string', enum: ['none', 'waiting', 'following'] },
  index: { ...orNull(whole), description: 'The index that it was sent last.' },
  lagSeconds: { ...orNull(whole), description: 'For how long it has lacked a change.' },
})

export const routers = defineResource({
  name: 'router',
  plural: 'routers',
  alternateName: { name: 'transit-router', plural: 'transit-routers' },
  summary: 'A router of the network; the edge routers, which clients connect to, are among them.',
  fields: {
    ...routerFields,
    // The fields that only edge routers have. They lie in the same table, so that all routers share one space of names.
    isEdge: f.bool({ access: 'internal' }),
    roleAttributes: f.roleAttributes({ access: 'internal' }),
    isTunnelerEnabled: f.bool({ access: 'internal' }),
    appData: f.tags({ access: 'internal' }),
    certPem: f.text({ access: 'internal', nullable: true }),
  },
  inputs: routerInputs,
  derived: routerEnrollmentMembers,
  optionalMembers: Object.keys(routerEnrollmentMembers),
  dependsOn: { enrollments: ['edgeRouterId', 'transitRouterId'] },
  computed: {
    isOnline: { ...flag, 'x-offline': null },
    version: { ...text, description: 'The release of its software; empty while it is not connected.' },
    linkCount: { ...whole, nullable: true, 'x-offline': null, description: 'How many links it has to other routers.' },
    circuitCount: { ...whole, nullable: true, 'x-offline': null, description: 'How many circuits pass it.' },
    supportsOidc: {
      ...orNull(flag),
      description:
        'Whether clients that sign in by OpenID Connect can use it, by the release with which it last connected; null if it has not enrolled.',
    },
    controllers: {
      ...orNull(listOf(text)),
      'x-offline': null,
      description: 'The controllers of a cluster that it is connected to; empty if there is one alone.',
    },
    dataModel: {
      ...orNull(dataModel),
      'x-offline': null,
      description:
        'How it follows the data model, by which routers of release 2 decide; null while it is not connected.',
    },
  },
  isConfidential: true,
  waysIn: routerWaysIn,
  columns: [
    ...['id', 'name', 'isOnline', 'controllers', 'version', 'supportsOidc', 'linkCount', 'circuitCount', 'isVerified'],
    'disabled',
  ],
  example: { create: { name: 'transit-north', cost: 10 }, filter: 'disabled = false sort by name' },
})
