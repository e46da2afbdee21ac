// Finds the records that a network file refers to by name: records of the file itself, and records that exist.

import type { AnyResource } from '../../definitions/resources/define.ts'
import { getResource } from '../../definitions/resources/index.ts'
import { findNearest } from '../../foundation/nearest.ts'
import { selectRows, withParent } from '../../storage/entities/subtypes.ts'
import { sqlText } from '../../storage/lists/sql-text.ts'
import { getSqlDialect } from '../../storage/sql-dialect.ts'
import type { ReadContext } from '../../storage/transactions/context.ts'
import { isOneOf } from '../../storage/untyped.ts'

/** How many names of the network are compared with one that nothing has. */
const MAX_CANDIDATES = 200

/** Names and ids by resource. A name comes first; an id is for records whose names say less, such as those of other tools. */
export class KnownNames {
  readonly #context: Pick<ReadContext, 'db'>
  readonly #idsByName = new Map<string, string>()
  readonly #namesById = new Map<string, string>()
  /** The names that were looked up and do not exist. */
  readonly #missing = new Set<string>()

  constructor(context: Pick<ReadContext, 'db'>) {
    this.#context = context
  }

  /** Adds a record of the file; its id may be one that it will get. */
  add({ plural }: AnyResource, name: string, id: string): void {
    this.#namesById.set(id, name)
    for (const each of withParent(plural)) this.#idsByName.set(toKey(each, name), id)
  }

  /** The id of a record, by its name or id; undefined if there is none. It must have been loaded. */
  findId(plural: string, nameOrId: string): string | undefined {
    return this.#idsByName.get(toKey(plural, nameOrId))
  }

  /** The name of a record that was added or loaded. */
  findName(id: string): string | undefined {
    return this.#namesById.get(id)
  }

  /** Looks up the names of records by their ids. */
  async loadIds(plural: string, ids: Iterable<string>): Promise<void> {
    const unknownIds = [...new Set(ids)].filter((id) => !this.#namesById.has(id))
    if (unknownIds.length > 0) await this.#loadBy('id', plural, unknownIds)
  }

  /** Looks up the ids of records by their names, unless they are known. */
  async load(plural: string, names: Iterable<string>): Promise<void> {
    const unknownNames = [...new Set(names)].filter((name) => {
      const key = toKey(plural, name)
      return !this.#idsByName.has(key) && !this.#missing.has(key)
    })
    if (unknownNames.length === 0) return
    await this.#loadBy('name', plural, unknownNames)
    const others = unknownNames.filter((name) => !this.#idsByName.has(toKey(plural, name)))
    if (others.length === 0) return
    await this.#loadBy('id', plural, others)
    for (const name of others) {
      const key = toKey(plural, name)
      if (!this.#idsByName.has(key)) this.#missing.add(key)
    }
  }

  /** Names that are similar to one that nothing has, of the file and of the network. */
  async findNearestNames(plural: string, name: string): Promise<string[]> {
    const { db } = this.#context
    const ofFile = [...this.#idsByName.keys()].flatMap((key) => {
      const [each, nameOrId = ''] = key.split('\n')
      return each === plural ? nameOrId : []
    })
    const middle = Math.ceil(name.length / 2)
    const sqlDialect = getSqlDialect(db)
    const rows = await selectRows(db, getResource(plural))
      .select('name')
      // A single typing error leaves one half intact.
      .where((eb) =>
        eb.or(
          [name.slice(0, middle), name.slice(middle)]
            .filter((half) => half !== '')
            .map((half) => sqlDialect.containsIgnoringCase(sqlText.ref('name'), half) as never),
        ),
      )
      .limit(MAX_CANDIDATES)
      .execute()
    return findNearest(name, [...ofFile, ...rows.map((row) => String(row.name))])
  }

  async #loadBy(column: 'name' | 'id', plural: string, values: readonly string[]): Promise<void> {
    const rows = await selectRows(this.#context.db, getResource(plural))
      .select(['id', 'name'])
      .where(isOneOf(this.#context.db, column, values))
      .execute()
    for (const row of rows) {
      const [id, name] = [String(row.id), String(row.name)]
      this.#idsByName.set(toKey(plural, column === 'name' ? name : id), id)
      this.#namesById.set(id, name)
    }
  }
}

function toKey(plural: string, name: string): string {
  return `${plural}\n${name}`
}
