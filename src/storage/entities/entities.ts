// Create, read, change and delete records of any resource: the one place that knows references, sets and their rules.

import { type Mention, type ReferenceField, readReference } from '../../definitions/model/columns.ts'
import { getCompiledResource } from '../../definitions/model/index.ts'
import { mayReadRecord } from '../../definitions/permissions/readable-records.ts'
import type { AnyResource, AnyRow, AuditDetail, Create, Entity } from '../../definitions/resources/define.ts'
import { getResource } from '../../definitions/resources/index.ts'
import { applyFallbacks, applyPatch } from '../../definitions/schema/bodies.ts'
import { type AnyField, toMemberName } from '../../definitions/schema/fields.ts'
import { type ControllerError, errors, invalidError, notFoundError } from '../../foundation/errors.ts'
import { newId } from '../../foundation/ids.ts'
import type { Behaviors } from '../behavior.ts'
import { UniqueViolationError } from '../store.ts'
import { type Change, toChange } from '../transactions/changes.ts'
import type { Context, WriteContext } from '../transactions/context.ts'
import { isOneOf, untyped } from '../untyped.ts'
import { omitInputs, requireDeclaredFields } from './declared-fields.ts'
import { collectTargetIds, findMentioningIds, getDeletionRule, readNames } from './mentions.ts'
import { getRecordTable } from './record-tables.ts'
import { entityFromRow, toChangedColumns, toRow } from './rows.ts'
import { resolveSubtype, selectRows, withParent } from './subtypes.ts'

type AnyEntity = Record<string, unknown> & { id: string; createdAt: number; updatedAt: number }

/** A change whose preparation is complete; it makes the change inside a transaction. */
export type PreparedChange = (tx: WriteContext) => Promise<AnyEntity>

/** How a record is stored. */
interface StoreOptions {
  /** The values that its behavior prepared before the transaction. */
  readonly prepared?: unknown
  /** The detail in which the audit stores the change; by default the definition decides. */
  readonly audit?: AuditDetail
}

/** The name of a record in sentences: "config type". */
export function toResourceNoun(resource: AnyResource): string {
  return resource.name.replaceAll('-', ' ')
}

// ---- reading -------------------------------------------------------------------------------------------------------

/** The row of a record, or undefined. */
export async function findRow(
  context: Pick<Context, 'db'>,
  resource: AnyResource,
  id: string,
): Promise<AnyRow | undefined> {
  return getRecordTable(resource).findById(context.db, id)
}

/** A record as the code sees it, or undefined. */
export async function find<R extends AnyResource>(
  context: Pick<Context, 'db'>,
  resource: R,
  id: string,
): Promise<Entity<R> | undefined> {
  const row = await findRow(context, resource, id)
  return row && (entityFromRow(resource, row) as Entity<R>)
}

/** A record as the code sees it. @throws NOT_FOUND */
export async function get<R extends AnyResource>(
  context: Pick<Context, 'db'>,
  resource: R,
  id: string,
): Promise<Entity<R>> {
  const entity = await find(context, resource, id)
  if (!entity) throw notFoundError(toResourceNoun(resource), id)
  return entity
}

/** A record that may be changed. @throws NOT_FOUND, ENTITY_CAN_NOT_BE_UPDATED */
async function getChangeable(context: Pick<Context, 'db'>, resource: AnyResource, id: string): Promise<AnyEntity> {
  const entity = (await get(context, resource, id)) as AnyEntity
  if (entity.isSystem === true) throw errors.ENTITY_CAN_NOT_BE_UPDATED()
  return entity
}

// ---- changing -------------------------------------------------------------------------------------------------------

/** Changes records of every resource, by the behavior of each. */
export class EntityStore {
  readonly #behaviors: Behaviors

  constructor(behaviors: Behaviors) {
    this.#behaviors = behaviors
  }

  /** Creates a record; absent members get their defaults. @throws the errors of the resource's behavior */
  async create<R extends AnyResource>(context: Context, resource: R, values: Create<R>): Promise<Entity<R>> {
    const draft = newEntity(context, resource, omitInputs(resource, values) as Partial<Entity<R>>)
    return (await context.write(await this.prepareInsert(context, resource, draft, values))) as Entity<R>
  }

  /** Prepares the creation of a record, so that a transaction can make it together with other changes. */
  async prepareInsert(
    context: Context,
    resource: AnyResource,
    draft: AnyEntity,
    inputs: Readonly<Record<string, unknown>> = {},
  ): Promise<PreparedChange> {
    const change = { next: draft as never, previous: undefined }
    const prepared = await this.#behaviors.get(resource).prepareCreate?.(context, change, inputs as never)
    return (tx) => this.insert(tx, resource, draft, { prepared })
  }

  /** Sets every changeable field of a record: those that are absent fall back to their defaults. */
  async replace(context: Context, resource: AnyResource, id: string, values: Readonly<Record<string, unknown>>) {
    const replace = (previous: AnyEntity) => ({ ...previous, ...pickReplaceable(resource, values) })
    await context.write(await this.#prepareChange(context, resource, id, values, replace))
  }

  /** Changes the fields that are named, and leaves the others. */
  async patch(context: Context, resource: AnyResource, id: string, values: Readonly<Record<string, unknown>>) {
    await context.write(await this.preparePatch(context, resource, id, values))
  }

  /** Prepares the same, so that a transaction can make it together with other changes. */
  preparePatch(
    context: Context,
    resource: AnyResource,
    id: string,
    values: Readonly<Record<string, unknown>>,
  ): Promise<PreparedChange> {
    return this.#prepareChange(context, resource, id, values, (previous) => {
      const next = applyPatch(resource.fields, previous, pickChangeable(resource, values))
      const fields = resource.variants?.[previous.typeId as string]
      if (fields && values.details)
        next.details = applyPatch(fields, previous.details as AnyEntity, values.details as AnyEntity)
      return next
    })
  }

  /**
   * Deletes a record with all that belongs to it. @throws NOT_FOUND, CAN_NOT_DELETE_REFERENCED_ENTITY, and the errors of its
   * rules
   */
  async remove(context: Context, resource: AnyResource, id: string): Promise<void> {
    await context.write(async (tx) => {
      const { isSystem } = (await get(tx, resource, id)) as AnyEntity
      if (isSystem === true && !resource.areSystemRecordsDeletable) throw errors.ENTITY_CAN_NOT_BE_DELETED()
      await this.removeInTransaction(tx, resource, id)
    })
  }

  /** Stores a complete record. With `method`, its audit record names the method of a sign-in. */
  async insert(
    tx: WriteContext,
    resource: AnyResource,
    entity: AnyEntity,
    { prepared, audit = resource.audit, ...details }: StoreOptions & Pick<Change, 'method' | 'identity'> = {},
  ): Promise<AnyEntity> {
    await this.#checkRecord(tx, resource, entity, undefined, prepared)
    requireDeclaredFields(resource, entity)
    const table = getRecordTable(resource)
    const n = await withFieldErrors(resource, entity, () => table.insert(tx.db, toRow(resource, entity)))
    for (const set of table.sets) await table.writeMembers(tx.db, set, n, [], entity[set.field] as string[])
    const { id, createdAt: at } = entity
    tx.record(toChange({ operation: 'create', audit, resource: resource.plural, id, at, after: entity, ...details }))
    await this.#behaviors.get(resource).created?.(tx, entity as never, prepared)
    return entity
  }

  /**
   * Stores a changed record. `updatedAt` is set even if nothing else changes. @throws StoreMisuseError if a changed value is
   * not of a field
   */
  async update<R extends AnyResource>(
    tx: WriteContext,
    declared: R,
    previous: AnyEntity,
    changed: Readonly<Partial<Entity<R>>>,
    options: StoreOptions = {},
  ): Promise<AnyEntity> {
    return this.#storeUpdate(tx, declared, previous, { ...previous, ...changed }, options)
  }

  /** @param next the whole record after the change; its `updatedAt` is set here */
  async #storeUpdate(
    tx: WriteContext,
    declared: AnyResource,
    previous: AnyEntity,
    next: AnyEntity,
    { prepared, audit = declared.audit }: StoreOptions,
  ): Promise<AnyEntity> {
    const resource = resolveSubtype(declared, previous)
    next.updatedAt = tx.clock.now()
    await this.#checkRecord(tx, resource, next, previous, prepared)
    requireDeclaredFields(resource, next)
    const table = getRecordTable(resource)
    const n = await withFieldErrors(resource, next, () =>
      table.update(tx.db, next.id, toChangedColumns(resource, previous, next)),
    )
    for (const set of table.sets) {
      const [old, now] = [previous[set.field], next[set.field]] as [string[], string[]]
      if (now !== old) await table.writeMembers(tx.db, set, n, old, now)
    }
    const at = next.updatedAt
    const change = {
      operation: 'update',
      resource: resource.plural,
      id: next.id,
      before: previous,
      after: next,
    } as const
    tx.record(toChange({ ...change, audit, at }))
    await this.#behaviors.get(resource).updated?.(tx, next as never, previous as never, prepared)
    return next
  }

  /** Deletes a record, its dependent records, and every mention of it in sets. */
  async removeInTransaction(
    tx: WriteContext,
    declared: AnyResource,
    id: string,
    audit: AuditDetail = declared.audit,
  ): Promise<void> {
    const row = await findRow(tx, declared, id)
    if (!row) throw notFoundError(toResourceNoun(declared), id)
    const resource = resolveSubtype(declared, row)
    const entity = entityFromRow(resource, row) as AnyEntity
    await this.#behaviors.get(resource).beforeDelete?.(tx, entity as never)
    for (const plural of withParent(resource.plural)) {
      for (const mention of getCompiledResource(plural).mentions)
        await this.#releaseReference(tx, mention, resource, id)
    }
    const table = getRecordTable(resource)
    for (const set of table.sets) await table.writeMembers(tx.db, set, row.n, entity[set.field] as string[], [])
    await table.remove(tx.db, row.n)
    const at = tx.clock.now()
    tx.record(toChange({ operation: 'delete', audit, resource: resource.plural, id, at, before: entity }))
    await this.#behaviors.get(resource).deleted?.(tx, entity as never)
  }

  /**
   * Deletes those of the records that exist, and their dependent records. Returns how many existed. If nothing has to be
   * checked for each record, this takes the same few statements for any number of them.
   */
  async removeAllIn(
    tx: WriteContext,
    resource: AnyResource,
    ids: readonly string[],
    audit: AuditDetail = resource.audit,
  ): Promise<number> {
    if (ids.length === 0) return 0
    if (!this.#isRemovableAtOnce(resource)) {
      for (const id of ids) await this.removeInTransaction(tx, resource, id, audit)
      return ids.length
    }
    for (const { from, name } of getCompiledResource(resource.plural).mentions)
      await this.removeAllIn(tx, from, await findReferringIds(tx, from, name, ids))
    const removal = untyped(tx.db)
      .deleteFrom(resource.table)
      .where(isOneOf(tx.db, 'id', ids))
    const at = tx.clock.now()
    const common = { operation: 'delete', resource: resource.plural, at } as const
    const rows = (await removal.returningAll().execute()) as AnyRow[]
    rows.forEach((row, index) => {
      const change = { ...common, audit, id: row.id, before: entityFromRow(resource, row) as AnyEntity }
      // Equal events are one audit record with their count.
      if (audit !== 'event') tx.record(toChange(change))
      else tx.record(toChange(index === 0 ? { ...change, count: rows.length } : { ...change, audit: 'none' }))
    })
    return rows.length
  }

  async #prepareChange(
    context: Context,
    resource: AnyResource,
    id: string,
    values: Readonly<Record<string, unknown>>,
    apply: (previous: AnyEntity) => Record<string, unknown>,
  ): Promise<PreparedChange> {
    requireDeclaredFields(resource, omitInputs(resource, values))
    const prepared = this.#preparesUpdates(resource)
      ? await this.#prepareUpdate(context, resource, id, values, apply)
      : undefined
    return async (tx) => {
      // Also if it was read to prepare the change, because another change may have been committed since.
      const previous = await getChangeable(tx, resource, id)
      return this.#storeUpdate(tx, resource, previous, apply(previous) as AnyEntity, { prepared })
    }
  }

  async #prepareUpdate(
    context: Context,
    resource: AnyResource,
    id: string,
    values: Readonly<Record<string, unknown>>,
    apply: (previous: AnyEntity) => Record<string, unknown>,
  ): Promise<unknown> {
    const previous = await getChangeable(context, resource, id)
    const change = { next: apply(previous) as never, previous: previous as never }
    return this.#behaviors.get(resolveSubtype(resource, previous)).prepareUpdate?.(context, change, values as never)
  }

  /** Whether changes of some records of this resource are prepared. */
  #preparesUpdates(resource: AnyResource): boolean {
    const { subtypes } = getCompiledResource(resource.plural)
    return [resource, ...subtypes].some((each) => this.#behaviors.get(each).prepareUpdate !== undefined)
  }

  /** Whether a record of this resource can be deleted without checking rules, sets or mentions. */
  #isRemovableAtOnce(resource: AnyResource): boolean {
    const { beforeDelete, deleted } = this.#behaviors.get(resource)
    const isPlain = !resource.subtypeOf && !beforeDelete && !deleted && getRecordTable(resource).sets.length === 0
    return (
      isPlain &&
      getCompiledResource(resource.plural).mentions.every(
        ({ from, field }) => field.kind.reference?.onDelete === 'cascade' && this.#isRemovableAtOnce(from),
      )
    )
  }

  /** Applies the rules of the resource, which refuse or complete a record. Afterwards, what it refers to must exist. */
  async #checkRecord(
    tx: WriteContext,
    resource: AnyResource,
    next: AnyEntity,
    previous: AnyEntity | undefined,
    prepared: unknown,
  ): Promise<void> {
    await checkTargets(tx, resource, next, previous)
    const behavior = this.#behaviors.get(resource)
    if (!behavior.check) return
    const unchecked = { ...next }
    await behavior.check(tx, next as never, previous as never, prepared)
    await checkTargets(tx, resource, next, unchecked)
  }

  /** Handles the mentions of a record as their definitions require, before it is deleted. */
  async #releaseReference(tx: WriteContext, mention: Mention, resource: AnyResource, id: string): Promise<void> {
    const { from, name, column, field } = mention
    const onDelete = getDeletionRule(mention)
    const ids = await findMentioningIds(tx, mention, id, onDelete === 'restrict' ? MAX_NAMED_RECORDS : undefined)
    if (ids.length === 0) return
    if (onDelete === 'restrict') {
      const reason = `the ${toResourceNoun(resource)} is in use by ${from.plural.replaceAll('-', ' ')}`
      const cause = { field: toMemberName(name, field), reason }
      if (!mayRead(tx, from)) throw errors.CAN_NOT_DELETE_REFERENCED_ENTITY(cause)
      const names = (await readNames(tx, from, ids)).join(', ')
      throw errors.CAN_NOT_DELETE_REFERENCED_ENTITY({ ...cause, reason: `${reason}: ${names}`, value: ids })
    }
    if (onDelete === 'cascade') await this.removeAllIn(tx, from, ids)
    else for (const mentioningId of ids) await this.#clearReference(tx, from, mentioningId, column, field, id)
  }

  async #clearReference(
    tx: WriteContext,
    from: AnyResource,
    id: string,
    name: string,
    field: AnyField,
    removedId: string,
  ): Promise<void> {
    const previous = (await get(tx, from, id)) as AnyEntity
    const value = field.kind.roles ? `@${removedId}` : removedId
    const without = field.kind.name === 'set' ? (previous[name] as string[]).filter((entry) => entry !== value) : null
    await this.update(tx, from, previous, { [name]: without })
  }
}

/** Returns a complete record with an id, which is not stored yet. @throws StoreMisuseError if a value is not of a field */
export function newEntity<R extends AnyResource>(
  { clock }: Pick<Context, 'clock'>,
  resource: R,
  values: Readonly<Partial<Entity<R>>>,
): Entity<R> & AnyEntity {
  const { id, ...fieldValues } = values as Readonly<Record<string, unknown>>
  requireDeclaredFields(resource, fieldValues)
  const now = clock.now()
  const complete = { ...applyFallbacks(resource.fields, fieldValues), createdAt: now, updatedAt: now }
  return { ...complete, id: typeof id === 'string' ? id : newId() } as Entity<R> & AnyEntity
}

/** The fields that a caller may change later, with the defaults of those that were not sent. */
function pickReplaceable(resource: AnyResource, values: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const fields = Object.fromEntries(
    Object.entries(resource.fields).filter(([name, field]) => isChangeableField(name, field)),
  )
  return applyFallbacks(fields, values)
}

function pickChangeable(resource: AnyResource, values: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(values).filter(([name]) => {
      const field = resource.fields[name]
      return field && isChangeableField(name, field)
    }),
  )
}

function isChangeableField(name: string, field: AnyField): boolean {
  const { access = 'write' } = field.options
  return access === 'write' || name === 'details'
}

/** Ids of the records whose reference is one of `targets`. */
async function findReferringIds(
  tx: WriteContext,
  from: AnyResource,
  name: string,
  targets: readonly string[],
): Promise<string[]> {
  const rows = await untyped(tx.db)
    .selectFrom(from.table)
    .select('id')
    .where(isOneOf(tx.db, name, targets))
    .execute()
  return rows.map((row) => row.id as string)
}

// ---- references ------------------------------------------------------------------------------------------------------

/** Refuses values that name records which do not exist. */
async function checkTargets(
  tx: WriteContext,
  resource: AnyResource,
  next: AnyEntity,
  previous: AnyEntity | undefined,
): Promise<void> {
  for (const reference of getCompiledResource(resource.plural).references) {
    const value = readReference(reference, next)
    if (value === null || value === undefined) continue
    if (previous && value === readReference(reference, previous)) continue
    const ids = collectTargetIds(reference.field, value)
    const missingIds = await findMissingIds(tx, reference.target, ids)
    if (missingIds.length > 0) throw unknownTargetError(reference, missingIds)
  }
}

async function findMissingIds(tx: WriteContext, plural: string, ids: readonly string[]): Promise<string[]> {
  const [only] = ids
  if (only === undefined) return []
  if (ids.length === 1) return (await getRecordTable(getResource(plural)).exists(tx.db, only)) ? [] : [only]
  const rows = await selectRows(tx.db, getResource(plural))
    .select('id')
    .where(isOneOf(tx.db, 'id', ids))
    .execute()
  const existingIds = new Set(rows.map((row) => row.id))
  return ids.filter((id) => !existingIds.has(id))
}

function unknownTargetError({ name, field, target }: ReferenceField, missingIds: readonly string[]): ControllerError {
  const { kind } = field
  if (kind.roles) return invalidError(name, `names ${target.replaceAll('-', ' ')} that do not exist`, missingIds)
  const { unknown: member = toMemberName(name, field), unknownStatus } = kind.reference ?? {}
  const cause = { field: member, reason: 'does not exist', value: missingIds[0] }
  return unknownStatus === 404 ? errors.NOT_FOUND(cause) : errors.COULD_NOT_VALIDATE(cause)
}

// How many of the records that prevent a deletion its error names.
const MAX_NAMED_RECORDS = 10

/** Whether a caller may read every record of a resource. */
function mayRead({ caller }: Pick<WriteContext, 'caller'>, { plural }: AnyResource): boolean {
  return caller.kind !== 'identity' || mayReadRecord(caller.rights, { resource: plural, states: [] })
}

// ---- failures --------------------------------------------------------------------------------------------------------

/** Runs a statement, and converts a unique violation to the error of its field. */
async function withFieldErrors<T>(resource: AnyResource, entity: AnyEntity, statement: () => Promise<T>): Promise<T> {
  try {
    return await statement()
  } catch (error) {
    if (!(error instanceof UniqueViolationError) || error.table !== resource.table) throw error
    const name = error.columns.at(-1) ?? ''
    const field = resource.fields[name]
    throw invalidError(field ? toMemberName(name, field) : name, 'is taken', field?.options.secret ? '' : entity[name])
  }
}
