// Imports the records of a former controller: each is judged by its definition's rules, and keeps its id and its times.
import { readInput } from '../definitions/model/input.ts'
import type { AnyResource } from '../definitions/resources/define.ts'
import { applyFallbacks, NO_TOLERANCE } from '../definitions/schema/bodies.ts'
import { ConfigSchemas } from '../definitions/schema/config-schemas.ts'
import { toMemberName } from '../definitions/schema/fields.ts'
import { toIsoTime } from '../foundation/clock.ts'
import { ControllerError, type FieldCause } from '../foundation/errors.ts'
import { type EntityStore, find } from '../storage/entities/entities.ts'
import type { Context, WriteContext } from '../storage/transactions/context.ts'
import { untyped } from '../storage/untyped.ts'
import { type Conversion, type ConvertedRecord, describeName, type KindConversion } from './conversion.ts'
import {
  authPolicyConversion,
  createCredentialConversions,
  enrollmentConversion,
  identityConversion,
  mfaConversion,
  signerConversion,
} from './convert-identities.ts'
import {
  configConversion,
  configTypeConversion,
  edgeRouterPolicyConversion,
  postureCheckConversion,
  routerConversion,
  serviceConversion,
  serviceEdgeRouterPolicyConversion,
  servicePolicyConversion,
  terminatorConversion,
} from './convert-network.ts'
import type { SourceDatabase, SourceRecord } from './source-records.ts'

/** How many records one transaction imports: they are in memory until it ends. */
const RECORDS_PER_TRANSACTION = 250
// Records that are as large as no real ones are.
const MAX_BYTES_PER_TRANSACTION = 64 * 2 ** 20

// Clients of the former controller sent them, and their values were what it accepted.
const TOLERANCE = {
  ...NO_TOLERANCE,
  unknownMembers: 'ignore',
  undeclaredNulls: 'ignore',
  blankChoices: 'default',
} as const

/** By kind: how many records the former database has, and how many of them were adopted. */
export type AdoptedCounts = Readonly<Record<string, { readonly found: number; readonly adopted: number }>>

type AnyEntity = Record<string, unknown> & { id: string; createdAt: number; updatedAt: number }

/** A record that is ready to be stored, and where it comes from. */
interface Draft {
  readonly resource: AnyResource
  readonly entity: AnyEntity
  readonly kind: string
  /** The name of the former record. That itself would keep its pages in memory. */
  readonly name: string
}

/** Imports all records, in an order in which each finds those that it refers to. */
export async function importRecords(
  context: Context,
  entities: EntityStore,
  database: SourceDatabase,
  conversion: Conversion,
): Promise<AdoptedCounts> {
  const schemas = new ConfigSchemas()
  const counts: Record<string, { found: number; adopted: number }> = {}
  await addBuiltInIds(context, conversion)
  for (const kind of listConversions()) {
    const count = { found: 0, adopted: 0 }
    counts[kind.kind] = count
    let drafts: Draft[] = []
    let storedBytes = database.bytesRead
    const flush = async () => {
      count.adopted += await storeDrafts(context, entities, drafts, conversion, schemas)
      drafts = []
      storedBytes = database.bytesRead
    }
    for (const [id, source] of database.records(kind.kind)) {
      count.found += 1
      const converted = kind.convert(id, source, conversion)
      for (const record of converted) {
        const entity = judge(record, source, kind.kind, conversion)
        if (entity) drafts.push({ resource: record.resource, entity, kind: kind.kind, name: describeName(source) })
        else if (record.id === id) break
      }
      // Built-in records are here already.
      if (kind.kind === 'configTypes' && converted.length === 0 && conversion.hasId('config-types', id))
        count.adopted += 1
      const isLarge = database.bytesRead - storedBytes > MAX_BYTES_PER_TRANSACTION
      if (drafts.length >= RECORDS_PER_TRANSACTION || isLarge) await flush()
    }
    await flush()
    if (kind.kind === 'postureChecks') noteLostChecks(database, conversion)
  }
  return counts
}

function listConversions(): KindConversion[] {
  const credentials = createCredentialConversions()
  return [
    ...[configTypeConversion, configConversion, serviceConversion, signerConversion, authPolicyConversion],
    ...[credentials.cas, routerConversion, identityConversion, credentials.authenticators, enrollmentConversion],
    ...[mfaConversion, postureCheckConversion, servicePolicyConversion, edgeRouterPolicyConversion],
    ...[serviceEdgeRouterPolicyConversion, terminatorConversion],
  ]
}

/** Notes which records a new database has. */
async function addBuiltInIds(context: Context, conversion: Conversion): Promise<void> {
  for (const [plural, table] of [
    ['config-types', 'config_types'],
    ['auth-policies', 'auth_policies'],
  ] as const) {
    const rows = await context.db.selectFrom(table).select('id').execute()
    for (const { id } of rows) conversion.addId(plural, id)
  }
}

/** A policy that requires a check which is not adopted would grant more without it. */
function noteLostChecks(database: SourceDatabase, conversion: Conversion): void {
  for (const [id, record] of database.records('postureChecks')) {
    if (conversion.hasId('posture-checks', id)) continue
    for (const role of [`@${id}`, ...record.set('roleAttributes').map((attribute) => `#${attribute}`)])
      conversion.lostCheckRoles.add(role)
  }
}

/** Returns the record as its definition accepts it; undefined, with a note, if it does not. */
function judge(
  { resource, id, fields }: ConvertedRecord,
  source: SourceRecord,
  kind: string,
  conversion: Conversion,
): AnyEntity | undefined {
  const tags = kind === 'enrollments' ? {} : conversion.keepScalars(kind, id, source, 'tags')
  const all = { ...fields, tags }
  const createdAt = source.time('createdAt') ?? source.time('issuedAt') ?? conversion.now
  const updatedAt = source.time('updatedAt') ?? createdAt
  try {
    const entity = applyFallbacks(resource.fields, readFields(resource, all))
    return Object.assign(entity, { id, createdAt, updatedAt })
  } catch (error) {
    if (!(error instanceof ControllerError)) throw error
    conversion.note(kind, id, source, `${describeError(error)}: it is left out`)
    return undefined
  }
}

/** Reads the fields that clients set, as a request with them would be read. Those that only a controller sets are kept. */
function readFields(resource: AnyResource, fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  // An enrollment of a router has members that no request has.
  if (resource.plural === 'enrollments') return { ...fields }
  const body: Record<string, unknown> = {}
  const ownFields: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(fields)) {
    const field = resource.fields[name] ?? findVariantField(resource, name)
    if (!field) continue
    const isTime = field.kind.name === 'time' && typeof value === 'number'
    // The rules for usernames are for new ones.
    const isUsername = resource.plural === 'authenticators' && name === 'username'
    if (isSetByClients(field.options.access) && !isUsername)
      body[toMemberName(name, field)] = isTime ? toIsoTime(value) : value
    else if (name in resource.fields) ownFields[name] = value
  }
  return Object.assign(readInput(resource, 'create', body, TOLERANCE), ownFields)
}

function findVariantField({ variants }: AnyResource, name: string) {
  return Object.values(variants ?? {}).find((fields) => name in fields)?.[name]
}

function isSetByClients(access: string | undefined): boolean {
  return access !== 'read' && access !== 'internal'
}

/** Stores drafts in one transaction: one that the store rejects is left out, and a note says so. Returns how many are stored. */
async function storeDrafts(
  context: Context,
  entities: EntityStore,
  drafts: readonly Draft[],
  conversion: Conversion,
  schemas: ConfigSchemas,
): Promise<number> {
  if (drafts.length === 0) return 0
  const outcome = await context.write(async (tx) => {
    const results: Draft[] = []
    const rejected: [draft: Draft, error: ControllerError][] = []
    for (const draft of drafts) {
      try {
        await storeDraft(tx, entities, draft, schemas)
        results.push(draft)
      } catch (error) {
        if (!(error instanceof ControllerError)) throw error
        rejected.push([draft, error])
      }
    }
    return { results, rejected }
  })
  for (const { resource, entity } of outcome.results) {
    conversion.addId(resource.plural, entity.id)
    if (resource.subtypeOf) conversion.addId(resource.subtypeOf.resource, entity.id)
  }
  for (const [{ entity, kind, name }, error] of outcome.rejected)
    conversion.notes.add(kind, entity.id, name, `${describeError(error)}: it is left out`)
  return outcome.results.filter(({ resource }) => resource.plural !== 'service-configs').length
}

async function storeDraft(
  tx: WriteContext,
  entities: EntityStore,
  { resource, entity }: Draft,
  schemas: ConfigSchemas,
): Promise<void> {
  if (resource.plural === 'configs') await requireMatchingData(tx, entity, schemas)
  const existing = resource.plural === 'auth-policies' ? await find(tx, resource, entity.id) : undefined
  if (existing) {
    const { primary, secondary } = entity
    await entities.update(tx, resource, existing as AnyEntity, { primary, secondary } as never, { audit: 'none' })
  } else await entities.insert(tx, resource, entity, { audit: 'none' })
}

async function requireMatchingData(tx: WriteContext, config: AnyEntity, schemas: ConfigSchemas): Promise<void> {
  const rows = await untyped(tx.db)
    .selectFrom('config_types')
    .select('schema')
    .where('id', '=', config.configTypeId as string)
    .execute()
  const schema = rows[0]?.schema
  if (typeof schema === 'string') schemas.assertMatches(schema, config.data)
}

/** The rule that a record breaks, without its value, which may be a secret. */
export function describeError(error: ControllerError): string {
  const { field, reason } = (error.publicCause ?? {}) as Partial<FieldCause>
  return field && reason ? `${field} ${reason}` : error.message
}
