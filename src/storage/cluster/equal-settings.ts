// Settings that decide rights or expiry: the controllers of a network must agree on them, or it depends on the controller what is allowed.
//
// They are rows, stored when the network gets its second controller. A controller whose own differ does not start.
import { createHash } from 'node:crypto'
import type { Kysely } from 'kysely'
import { getWritten } from '../../settings/config.ts'
import { ConfigError } from '../../settings/setting-types.ts'
import { type Config, isSameSetting, type SettingKey } from '../../settings/settings.ts'
import type { Database } from '../database.ts'
import type { WriteContext } from '../transactions/context.ts'

const EQUAL_SETTINGS = [
  'session.timeout',
  'session.maxAge',
  'session.maxAgeOfDevices',
  'session.activityFlush',
  'oidc.announce',
  'oidc.announceCertificateRequests',
  'oidc.accessTokenLifetime',
  'oidc.idTokenLifetime',
  'oidc.refreshTokenLifetime',
  'enrollment.identity',
  'enrollment.router',
  'adoption.trialEnds',
  'totp.window',
  'audit.retention',
  'limits.sessionsPerIdentity',
  'limits.signInsPerIdentity',
  'limits.writesPerIdentity',
  'limits.ownChangesPerIdentity',
  'cluster.lease',
] as const satisfies readonly SettingKey[]

type EqualSetting = (typeof EQUAL_SETTINGS)[number]

/** A setting that this controller has otherwise than the network. */
export interface SettingDifference {
  readonly key: EqualSetting
  readonly own: unknown
  readonly shared: unknown
}

/** A digest of those of this controller, by which controllers find out that they differ. */
export function digestEqualSettings(config: Config): string {
  const values = EQUAL_SETTINGS.map((key) => [key, config[key]])
  return createHash('sha256').update(JSON.stringify(values)).digest('hex')
}

/** Makes those of this controller the ones of the network. */
export async function storeEqualSettings({ db }: WriteContext, config: Config): Promise<void> {
  await db.deleteFrom('shared_settings').execute()
  const rows = EQUAL_SETTINGS.map((name) => ({ name, value: JSON.stringify(getWritten(config, name)) }))
  await db.insertInto('shared_settings').values(rows).execute()
}

/** The settings of the network, as they are written. */
export async function readEqualSettings(db: Kysely<Database>): Promise<ReadonlyMap<EqualSetting, unknown>> {
  const rows = await db.selectFrom('shared_settings').selectAll().orderBy('name').execute()
  const ownRows = rows.filter(({ name }) => EQUAL_SETTINGS.includes(name as EqualSetting))
  return new Map(ownRows.map(({ name, value }) => [name as EqualSetting, JSON.parse(value)]))
}

export async function findDifferentSettings(db: Kysely<Database>, config: Config): Promise<SettingDifference[]> {
  const shared = await readEqualSettings(db)
  const differences = [...shared].map(([key, value]) => ({ key, own: getWritten(config, key), shared: value }))
  return differences.filter(({ key, own, shared }) => !isSameSetting(key, own, shared))
}

/** @throws ConfigError that names every setting in which this controller differs from the network */
export async function requireEqualSettings(db: Kysely<Database>, config: Config): Promise<void> {
  const [first, ...others] = (await findDifferentSettings(db, config)).map(
    ({ key, own, shared }) =>
      new ConfigError(
        key,
        `is ${own} here, and ${shared} for the controllers of the network: set it to ${shared} here, or change it for all by controller cluster settings --accept`,
      ),
  )
  if (first) throw new ConfigError(first.key, first.reason, undefined, others)
}
