// The interface of behaviors: the rules of a resource, its derived and computed fields, and its custom relations.

import type { AnyResource, AnyRow, ComputedInput, Entity, Inputs } from '../definitions/resources/define.ts'
import type { Awaitable } from '../foundation/awaitable.ts'
import type { RoleSelector } from '../policy/role-selector.ts'
import type { Context, ReadContext, WriteContext } from './transactions/context.ts'

/** A change that is not stored yet: the record as it will be, and as it was; a new record has its id already. */
export interface Draft<R> {
  readonly next: Entity<R>
  readonly previous: Entity<R> | undefined
}

/** Some records of a resource: those with these ids, or those that match any of these role selectors. */
export type Scope = { readonly ids: readonly string[] } | { readonly sides: readonly RoleSelector[] }

/** Finds the records of a custom relation of the record `id`; `query` holds the relation's own query parameters. */
export type FindRelated = (
  context: ReadContext,
  id: string,
  query: Readonly<Record<string, unknown>>,
) => Promise<Scope> | Scope

/** The behavior of one resource, registered by the plural of the resource. Every member is optional. */
export interface Behavior<R, Prepared = undefined> {
  /**
   * Before the transaction that creates a record: hashes, signs or compiles. `inputs` holds what was sent for the
   * definition's `inputs`. The methods below get its result.
   */
  prepareCreate?(context: Context, draft: Draft<R>, inputs: Inputs<R>): Promise<Prepared>
  /** The same before a record is changed. The record is read before the transaction only for behaviors with this method. */
  prepareUpdate?(context: Context, draft: Draft<R>, inputs: Inputs<R>): Promise<Prepared>
  /** Inside the transaction, before the record is written: refuses it, or completes it by changing `next`. */
  check?(tx: WriteContext, next: Entity<R>, previous: Entity<R> | undefined, prepared: Prepared): Promise<void>
  /** Inside the transaction, after the record is written. */
  created?(tx: WriteContext, entity: Entity<R>, prepared: Prepared): Promise<void>
  updated?(tx: WriteContext, entity: Entity<R>, previous: Entity<R>, prepared: Prepared): Promise<void>
  /** Inside the transaction, before anything is deleted: refuses it, or deletes what belongs to the record. */
  beforeDelete?(tx: WriteContext, entity: Entity<R>): Promise<void>
  /** Inside the transaction, after the record is deleted. */
  deleted?(tx: WriteContext, entity: Entity<R>): Promise<void>
  /**
   * Computes the members that the definition declares as `derived`, for each row, in their order. The result is cached
   * until the record changes, or a record of the definition's `dependsOn` that belongs to it.
   */
  deriveFields?(context: ReadContext, rows: readonly AnyRow[]): Promise<readonly Record<string, unknown>[]>
  /**
   * Computes the members that the definition declares as `computed`, for each record, in their order; never cached.
   * @param view how the operation shows the records
   */
  computeFields?(
    context: ReadContext,
    records: readonly ComputedInput[],
    view: unknown,
  ): Awaitable<readonly Record<string, unknown>[]>
  /** By name: the functions that find the records of custom relations. */
  readonly relations?: Readonly<Record<string, FindRelated>>
}

/** The behavior of a resource that is only known at run time. */
// biome-ignore lint/suspicious/noExplicitAny: behaviors are typed where they are written
export type AnyBehavior = Behavior<any, any>

const NO_BEHAVIOR: AnyBehavior = {}

/** The behaviors of all resources, by plural. Filled once, when the controller is composed. */
export class Behaviors {
  readonly #byPlural = new Map<string, AnyBehavior>()

  /** @throws Error if the resource has a behavior already, or the behavior finds relations that the resource does not declare */
  register<R extends AnyResource>(resource: R, behavior: AnyBehavior): void {
    const { plural, relations } = resource
    if (this.#byPlural.has(plural)) throw new Error(`${plural} has a behavior already`)
    for (const name of Object.keys(behavior.relations ?? {})) {
      if (relations[name]?.kind !== 'custom') throw new Error(`${plural} has no custom relation ${name}`)
    }
    if (behavior.deriveFields && isEmpty(resource.derived)) throw new Error(`${plural} declares no derived fields`)
    if (behavior.computeFields && isEmpty(resource.computed)) throw new Error(`${plural} declares no computed fields`)
    this.#byPlural.set(plural, behavior)
  }

  /** The behavior of a resource; one without any if none is registered. */
  get({ plural }: AnyResource): AnyBehavior {
    return this.#byPlural.get(plural) ?? NO_BEHAVIOR
  }

  /**
   * Requires that everything that the definitions leave to behaviors is provided, and that no behavior is registered for
   * another resource. @throws Error naming the first that is not
   */
  assertComplete(resources: readonly AnyResource[]): void {
    const plurals = new Set(resources.map(({ plural }) => plural))
    for (const plural of this.#byPlural.keys()) {
      if (!plurals.has(plural)) throw new Error(`a behavior is registered for the unknown resource ${plural}`)
    }
    for (const resource of resources) {
      const { plural, derived, computed, relations } = resource
      const behavior = this.get(resource)
      if (!isEmpty(derived) && !behavior.deriveFields) throw new Error(`no behavior derives the fields of ${plural}`)
      if (!isEmpty(computed) && !behavior.computeFields) throw new Error(`no behavior computes the fields of ${plural}`)
      for (const [name, { kind }] of Object.entries(relations)) {
        if (kind === 'custom' && !behavior.relations?.[name])
          throw new Error(`no behavior finds the relation ${name} of ${plural}`)
      }
    }
  }
}

function isEmpty(members: Readonly<Record<string, unknown>>): boolean {
  return Object.keys(members).length === 0
}
