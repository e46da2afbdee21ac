// Records as the data model of routers has them, from records that a commit changed and from rows.
import type { Selectable } from 'kysely'
import type { Database } from '../../storage/database.ts'
import type { RecordOf } from '../../storage/transactions/changes.ts'
import type {
  ModelConfig,
  ModelConfigType,
  ModelIdentity,
  ModelPolicy,
  ModelPostureCheck,
  ModelService,
} from './model-events.ts'

/** A config that an identity gets for a service. */
export interface ModelOverride {
  readonly serviceId: string
  readonly configTypeId: string
  readonly configId: string
}

export function toModelConfigType({ id, name }: Pick<RecordOf<'config-types'>, 'id' | 'name'>): ModelConfigType {
  return { kind: 'config-type', id, name }
}

type ConfigRecord = Pick<RecordOf<'configs'>, 'id' | 'name' | 'configTypeId' | 'data'>

export function toModelConfig({ id, name, configTypeId, data }: ConfigRecord): ModelConfig {
  return { kind: 'config', id, name, typeId: configTypeId, data: JSON.stringify(data) }
}

type ServiceRecord = Pick<RecordOf<'services'>, 'id' | 'name' | 'encryptionRequired' | 'configs'>

/** Configs are in the order of their ids, because routers compare them as lists. */
export function toModelService({ id, name, encryptionRequired, configs }: ServiceRecord): ModelService {
  return { kind: 'service', id, name, isEncryptionRequired: encryptionRequired, configIds: [...configs].sort() }
}

type PolicyRecord = Pick<RecordOf<'service-policies'>, 'id' | 'name' | 'type'>

export function toModelPolicy({ id, name, type }: PolicyRecord): ModelPolicy {
  return { kind: 'policy', id, name, type }
}

type PostureCheckRecord = Pick<RecordOf<'posture-checks'>, 'id' | 'name' | 'typeId' | 'details'>

export function toModelPostureCheck({ id, name, typeId, details }: PostureCheckRecord): ModelPostureCheck {
  return { kind: 'posture-check', id, name, typeId, details }
}

/** The columns of identities that the model needs. */
export const IDENTITY_COLUMNS = [
  'id',
  'name',
  'defaultHostingCost',
  'defaultHostingPrecedence',
  'serviceHostingCosts',
  'serviceHostingPrecedences',
  'appData',
  'disabledAt',
  'disabledUntil',
] as const

export type IdentityRecord = Pick<RecordOf<'identities'>, (typeof IDENTITY_COLUMNS)[number]>

/** A row with those columns. */
export type IdentityRow = Pick<Selectable<Database['identities']>, (typeof IDENTITY_COLUMNS)[number]>

export function identityFromRow(row: IdentityRow): IdentityRecord {
  return {
    ...row,
    defaultHostingPrecedence: row.defaultHostingPrecedence as IdentityRecord['defaultHostingPrecedence'],
    serviceHostingCosts: parseObject(row.serviceHostingCosts),
    serviceHostingPrecedences: parseObject(row.serviceHostingPrecedences),
    appData: parseObject(row.appData),
  }
}

/** Most of them are empty. */
function parseObject<T extends object>(text: string): T {
  return (text === '{}' ? EMPTY : JSON.parse(text)) as T
}

const EMPTY = {}

/**
 * An identity that is disabled for a time only is not disabled in the model, because no commit enables it again: a revocation
 * ends what it has, and it cannot sign in.
 */
export function toModelIdentity(record: IdentityRecord, overrides: readonly ModelOverride[]): ModelIdentity {
  const configs: Record<string, Record<string, string>> = {}
  for (const { serviceId, configTypeId, configId } of overrides) {
    configs[serviceId] ??= {}
    configs[serviceId][configTypeId] = configId
  }
  const { appData, disabledAt, disabledUntil } = record
  return {
    kind: 'identity',
    id: record.id,
    name: record.name,
    hostingCost: record.defaultHostingCost,
    hostingPrecedence: record.defaultHostingPrecedence as ModelIdentity['hostingPrecedence'],
    serviceCosts: record.serviceHostingCosts,
    servicePrecedences: record.serviceHostingPrecedences as ModelIdentity['servicePrecedences'],
    appData: isEmpty(appData) ? '' : JSON.stringify(appData),
    configs,
    isDisabled: disabledAt !== null && disabledUntil === null,
  }
}

function isEmpty(object: object): boolean {
  for (const _ in object) return false
  return true
}
