// A small network of random records, and what each of them looks like to a query.

import type { AnyResource } from '../../src/definitions/resources/define.ts'
import { getResource } from '../../src/definitions/resources/index.ts'
import type { Tags } from '../../src/definitions/schema/fields.ts'
import { parseRoleSelector, matchesSelector as sideMatches } from '../../src/policy/role-selector.ts'
import { newEntity } from '../../src/storage/entities/entities.ts'
import type { TestController } from '../world/controller.ts'
import type { Random } from '../world/random.ts'
import type { Known, Seen } from './random-queries.ts'

/** A list to be asked: its resource, its symbols, its records. */
export interface Listed {
  readonly resource: AnyResource
  readonly symbols: readonly Known[]
  readonly records: readonly Seen[]
}

const WORDS = [
  'north',
  'South',
  'straße',
  'İstanbul',
  'ſand',
  'ﬁsh',
  'a%b',
  'a_b',
  'q"uote',
  'back\\slash',
  '😀',
  '𐐀',
  'é',
  '',
]
const ATTRIBUTES = ['staff', 'lab', 'Ärzte', 'all', 'a b', 'x']

const common = (records: readonly Seen[]): Known[] => [
  { name: 'id', type: 'string', values: records.map(({ id }) => id) },
  { name: 'createdAt', type: 'date', values: records.map(({ createdAt }) => createdAt) },
  { name: 'updatedAt', type: 'date', values: records.map(({ updatedAt }) => updatedAt) },
  { name: 'isSystem', type: 'boolean', values: [] },
  { name: 'tags', type: 'tags', values: [] },
]
const text = (name: string, values: readonly unknown[]): Known => ({ name, type: 'string', values })
const named = (name: string, records: readonly Seen[]) =>
  text(
    name,
    records.map((record) => record[name]),
  )
const flag = (name: string): Known => ({ name, type: 'boolean', values: [] })

export async function randomNetwork(world: TestController, random: Random, size: number): Promise<Listed[]> {
  const label = (at: number) => `${random.pick(WORDS)}${random.pick(['', '-', ' '])}${random.pick(WORDS)} ${at}`
  const store = async (plural: string, values: Record<string, unknown>): Promise<Seen> => {
    world.clock.advance(random.pick([0, 0, 1, 1000]))
    const resource = getResource(plural)
    const entity = newEntity(world.system, resource, { tags: randomTags(random), ...values })
    await world.system.write((tx) => world.controller.entities.insert(tx, resource, entity))
    return { isSystem: false, ...entity } as unknown as Seen
  }
  const many = async (plural: string, most: number, values: (at: number) => Record<string, unknown>) => {
    const records: Seen[] = []
    for (let at = 0; at < most; at++) records.push(await store(plural, values(at)))
    return records
  }
  const readRecords = async (plural: string): Promise<Seen[]> => {
    const { entityFromRow: entityOf } = await import('../../src/storage/entities/rows.ts')
    const { untyped } = await import('../../src/storage/untyped.ts')
    const resource = getResource(plural)
    const rows = await untyped(world.controller.store.db).selectFrom(resource.table).selectAll().execute()
    return rows.map((row) => ({ isSystem: false, ...entityOf(resource, row as never) }) as unknown as Seen)
  }

  const types = await many('config-types', 3, (at) => ({ name: label(at), schema: null }))
  await many('configs', size / 4, (at) => ({
    name: label(at),
    configTypeId: random.pick(types).id,
    data: { any: 'thing' },
  }))
  const configs = await readRecords('configs')
  const configIds = configs.map(({ id }) => id as string)
  await many('services', size / 2, (at) => ({
    name: label(at),
    roleAttributes: random.some(ATTRIBUTES, 3).sort(),
    configs: [random.some(configIds, 1)[0] ?? []].flat(),
    terminatorStrategy: random.pick(['smartrouting', 'weighted']),
    encryptionRequired: true,
  }))
  await many('identities', size, (at) => ({
    name: label(at),
    typeId: random.pick(['Default', 'Device', 'User']),
    isAdmin: random.oneIn(3),
    externalId: random.oneIn(2) ? null : `${random.pick(WORDS)}${at}`,
    roleAttributes: random.some(ATTRIBUTES, 3).sort(),
  }))
  const services = await readRecords('services')
  const identities = await readRecords('identities')
  const sideRoles = (ids: readonly string[]) =>
    random.oneIn(8)
      ? ['#all']
      : [
          ...random.some(ATTRIBUTES, 2).map((attribute) => `#${attribute}`),
          ...random.some(ids, 2).map((id) => `@${id}`),
        ]
          .filter((role) => role !== '#all')
          .sort()
  await many('service-policies', size / 3, (at) => ({
    name: label(at),
    type: random.pick(['Dial', 'Bind']),
    semantic: random.pick(['AnyOf', 'AllOf']),
    identityRoles: sideRoles(identities.map(({ id }) => id as string)),
    serviceRoles: sideRoles(services.map(({ id }) => id as string)),
    postureCheckRoles: [],
  }))
  await many('posture-checks', size / 4, (at) => {
    const isMfa = random.oneIn(2)
    const details = isMfa
      ? {
          timeoutSeconds: -1,
          promptOnWake: random.oneIn(2),
          promptOnUnlock: random.oneIn(2),
          ignoreLegacyEndpoints: false,
        }
      : { domains: ['example.com'] }
    return {
      name: label(at),
      typeId: isMfa ? 'MFA' : 'DOMAIN',
      details,
      roleAttributes: random.some(ATTRIBUTES, 2).sort(),
    }
  })
  const policies = (await readRecords('service-policies')).map(
    (policy): Seen => ({
      ...policy,
      identities: matchedIds(policy, 'identityRoles', identities),
      services: matchedIds(policy, 'serviceRoles', services),
    }),
  )
  const checks = (await readRecords('posture-checks')).map(
    (check) => ({ ...check, ...(check.details as object) }) as Seen,
  )

  const configSymbols = [
    ...common(configs),
    named('name', configs),
    text(
      'type',
      configs.map(({ configTypeId }) => configTypeId),
    ),
  ]
  const serviceSymbols: Known[] = [
    ...common(services),
    named('name', services),
    text('terminatorStrategy', ['smartrouting', 'weighted']),
    { name: 'roleAttributes', type: 'set', values: ATTRIBUTES },
    { name: 'configs', type: 'set', values: configIds, inner: { symbols: configSymbols, find: finder(configs) } },
  ]
  const identitySymbols: Known[] = [
    ...common(identities),
    named('name', identities),
    named('externalId', identities),
    text('authPolicyId', ['default']),
    flag('isAdmin'),
    flag('isDefaultAdmin'),
    { name: 'roleAttributes', type: 'set', values: ATTRIBUTES },
  ]
  const set = (name: string, symbols: readonly Known[], records: readonly Seen[]): Known => ({
    name,
    type: 'set',
    values: records.map(({ id }) => id),
    inner: { symbols, find: finder(records) },
  })
  return [
    {
      resource: getResource('configs'),
      symbols: configSymbols,
      records: configs.map((config) => ({ ...config, type: config.configTypeId })),
    },
    { resource: getResource('services'), symbols: serviceSymbols, records: services },
    { resource: getResource('identities'), symbols: identitySymbols, records: identities },
    {
      resource: getResource('service-policies'),
      symbols: [
        ...common(policies),
        named('name', policies),
        text('semantic', ['AnyOf', 'AllOf']),
        { name: 'identityRoles', type: 'set', values: policies.flatMap((policy) => policy.identityRoles as string[]) },
        set('identities', identitySymbols, identities),
        set('services', serviceSymbols, services),
      ],
      records: policies,
    },
    {
      resource: getResource('posture-checks'),
      symbols: [
        ...common(checks),
        named('name', checks),
        text('typeId', ['MFA', 'DOMAIN']),
        flag('promptOnWake'),
        flag('promptOnUnlock'),
      ],
      records: checks,
    },
  ]
}

function finder(records: readonly Seen[]): (id: string) => Seen | undefined {
  const byId = new Map(
    records.map((record) => [record.id, { ...record, ...(record.configTypeId ? { type: record.configTypeId } : {}) }]),
  )
  return (id) => byId.get(id)
}

function matchedIds(policy: Seen, field: string, records: readonly Seen[]): string[] {
  const side = parseRoleSelector(policy.semantic as 'AnyOf', policy[field] as string[])
  return records
    .filter((record) => sideMatches(side, { id: record.id as string, attributes: record.roleAttributes as string[] }))
    .map(({ id }) => id as string)
}

function randomTags(random: Random): Tags {
  const values = ['north', 'South', 5, 2.5, 0, true, false, null, 'true', '5']
  return Object.fromEntries(
    random.some(['site', 'floor', 'on', 'a.b', 'room-1']).map((key) => [key, random.pick(values)]),
  )
}
