// Identities: people, devices, programs and routers that take part in the network, and the administrators among them.
import { checkWords } from '../permissions/words.ts'
import { f } from '../schema/fields.ts'
import { anyObject, entityReference, flag, listOf, objectOf, text, time, typed, uuid } from '../schema/json-schema.ts'
import { newUsername } from './authenticators.ts'
import { defineResource } from './define.ts'
import { enrollmentExpiry } from './enrollments.ts'
import { identityTypeIds } from './identity-types.ts'

const cost = { min: 0, max: 65535 } as const
export const precedences = ['default', 'required', 'failed'] as const

const hostInfo = (names: readonly string[]) =>
  typed<Record<string, string>>({
    type: 'object',
    properties: Object.fromEntries(names.map((name) => [name, { type: 'string', maxLength: 255 }])),
  })
/** A client's report about the machine that it runs on. */
export const envInfoSchema = hostInfo(['arch', 'domain', 'hostname', 'os', 'osRelease', 'osVersion'])
/** A client's report about itself. */
export const sdkInfoSchema = hostInfo(['appId', 'appVersion', 'branch', 'revision', 'type', 'version'])

const outstanding = { id: text, token: uuid, jwt: text, expiresAt: time }

export const identities = defineResource({
  name: 'identity',
  plural: 'identities',
  summary: 'A person, device, program or router that takes part in the network.',
  fields: {
    name: f.name({ acceptsNull: 'patch' }),
    typeId: f.reference('identity-types', {
      as: 'type',
      input: 'type',
      required: true,
      commandDefault: 'Default',
      choices: identityTypeIds,
      summary: 'What the identity stands for; Router belongs to the identities of edge routers.',
    }),
    isAdmin: f.bool({
      required: true,
      acceptsNull: 'patch',
      commandDefault: false,
      filter: true,
      summary: 'Whether the identity administers the network.',
    }),
    permissions: f.strings({
      acceptsNull: true,
      filter: true,
      maxItems: 100,
      objection: checkWords,
      summary: 'What it may administer, if it does not administer the whole network.',
    }),
    isDefaultAdmin: f.bool({ access: 'read', filter: true }),
    authPolicyId: f.reference('auth-policies', {
      as: 'authPolicy',
      default: 'default',
      blank: 'default',
      acceptsNull: true,
      filter: true,
      onDelete: 'restrict',
      unknownStatus: 404,
      summary: 'How the identity may sign in.',
    }),
    externalId: f.text({
      nullable: true,
      acceptsNull: true,
      unique: true,
      blank: null,
      filter: true,
      summary: 'What certificates and tokens of others call this identity.',
    }),
    roleAttributes: f.roleAttributes({
      acceptsNull: true,
      compatibleEmpty: 'null',
      summary: 'Attributes by which policies find this identity.',
    }),
    appData: f.tags({ summary: 'Key-value pairs handed to the applications that sign in.' }),
    defaultHostingCost: f.int({ ...cost, default: 0, summary: 'What it costs to use what this identity hosts.' }),
    defaultHostingPrecedence: f.choice(precedences, {
      default: 'default',
      summary: 'Of what this identity hosts: required before default before failed, whatever the cost.',
    }),
    serviceHostingCosts: f.map(typed<number>({ type: 'integer', minimum: cost.min, maximum: cost.max }), {
      keysOf: 'services',
      summary: 'By the id of a service: what hosting it here costs.',
    }),
    serviceHostingPrecedences: f.map(typed<string>({ type: 'string', enum: precedences }), {
      keysOf: 'services',
      summary: 'By the id of a service: the precedence of hosting it here.',
    }),
    // The services that the two maps name, so that those that are deleted can be taken out of them.
    hostedServices: f.references('services', {
      access: 'internal',
      input: 'serviceHostingCosts',
      filter: true,
      onDelete: 'clear',
      unknownStatus: 404,
    }),
    disabledAt: f.time({ access: 'read', nullable: true, omitNull: true }),
    disabledUntil: f.time({ access: 'read', nullable: true, omitNull: true }),
    envInfo: f.json(envInfoSchema, { access: 'read' }),
    sdkInfo: f.json(sdkInfoSchema, { access: 'read' }),
  },
  symbols: {
    type: { field: 'typeId', values: { Default: identityTypeIds.filter((id) => id !== 'Router') } },
  },
  inputs: {
    disabled: f.bool({
      access: 'create',
      default: false,
      summary: 'Create it disabled, so that it cannot sign in before it is enabled.',
    }),
    enrollment: f.object(
      {
        ott: f.bool({ summary: 'Make a one-time token, by which a device gets a certificate.' }),
        ottca: f.text({ summary: 'The same, for a certificate of this certificate authority.' }),
        updb: f.text({
          ...newUsername,
          summary: 'Create a one-time token with which a user sets a password for this username.',
        }),
        ...enrollmentExpiry,
      },
      {
        access: 'create',
        nullable: true,
        summary: 'The enrollments to make along with the identity: all that are asked for, or none.',
      },
    ),
  },
  derived: {
    isMfaEnabled: flag,
    authenticators: objectOf({
      cert: objectOf({ id: text, fingerprint: text }),
      updb: objectOf({ id: text, username: text }),
    }),
    enrollment: objectOf({
      ott: objectOf(outstanding),
      ottca: objectOf({ ...outstanding, caId: text, ca: entityReference }),
      updb: objectOf(outstanding),
    }),
    interfaces: { ...listOf(anyObject), nullable: true },
  },
  dependsOn: {
    authenticators: ['identityId'],
    enrollments: ['identityId'],
    'mfa-enrollments': ['identityId'],
  },
  derivedReferences: ['cas'],
  computed: {
    disabled: flag,
    hasApiSession: flag,
    hasEdgeRouterConnection: { ...flag, 'x-offline': null },
    edgeRouterConnectionStatus: { type: 'string', enum: ['online', 'offline', 'unknown'], 'x-offline': 'unknown' },
  },
  // Policy advice reads the role attributes, so that it needs no row of a record that is cached.
  computedFrom: ['disabledAt', 'disabledUntil', 'roleAttributes', 'isAdmin', 'permissions'],
  links: [
    { key: 'auth-policies', to: { resource: 'auth-policies', field: 'authPolicyId' } },
    'authenticators',
    'edge-router-policies',
    'edge-routers',
    'enrollments',
    'failed-service-requests',
    'posture-data',
    'service-configs',
    'service-policies',
    'services',
  ],
  relations: {
    authenticators: {
      kind: 'hasMany',
      resource: 'authenticators',
      field: 'identityId',
      operationId: 'getIdentityAuthenticators',
    },
    enrollments: {
      kind: 'hasMany',
      resource: 'enrollments',
      field: 'identityId',
      operationId: 'getIdentityEnrollments',
    },
    'service-policies': {
      kind: 'custom',
      resource: 'service-policies',
    },
    services: {
      kind: 'custom',
      resource: 'services',
      query: {
        policyType: {
          type: 'string',
          enum: ['dial', 'bind'],
          description: 'Only those that policies of this type lead to.',
        },
      },
    },
    'edge-router-policies': {
      kind: 'custom',
      resource: 'edge-router-policies',
      operationId: 'listIdentitysEdgeRouterPolicies',
    },
    'edge-routers': {
      kind: 'custom',
      resource: 'edge-routers',
    },
  },
  isConfidential: true,
  waysIn: { enrollment: {} },
  columns: ['id', 'name', 'typeId', 'isAdmin', 'roleAttributes', 'disabled'],
  example: {
    create: { name: 'laptop', type: 'Device', isAdmin: false, roleAttributes: ['staff'] },
    filter: 'anyOf(roleAttributes) = "staff" sort by name',
  },
})
