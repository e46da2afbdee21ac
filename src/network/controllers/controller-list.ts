// The list of controllers with the addresses at which routers reach them. Routers of release 2 follow it, and hold a connection to each.
//
// A router takes a list only if its version is greater than that of the one before, from whichever controller it comes. So the version
// is the position of the commit that made the list, which is the same everywhere and never falls.
import { type Kysely, sql, type Transaction } from 'kysely'
import type { Database } from '../../storage/database.ts'
import type { CommitRecorder } from '../../storage/store.ts'
import type { Change, Commit } from '../../storage/transactions/changes.ts'
import type { SideEffect } from '../../storage/transactions/projection.ts'
import type { ConnectedRouter, ConnectedRouters } from '../routers/connected-routers.ts'
import type { ControllerAnnouncement } from '../routers/router-connection.ts'

/** The members of a controller's record that the list follows. */
interface Reachable {
  readonly node: string | null
  readonly ctrlAddress: string | null
}

export class ControllerList implements SideEffect, CommitRecorder {
  readonly kind = 'side effect'
  readonly name = 'list of controllers'
  readonly #connected: Pick<ConnectedRouters, 'list'>
  /** Id → address, in the order of their records. */
  #addresses = new Map<string, string>()
  #version = 0
  readonly #listeners: (() => void)[] = []
  /** One object for all routers, so that it is encoded once. */
  #announcement: ControllerAnnouncement | undefined

  constructor(connected: Pick<ConnectedRouters, 'list'>) {
    this.#connected = connected
  }

  /** Whether routers reach a controller by an address of its own. */
  has(controllerId: string): boolean {
    return this.#addresses.has(controllerId)
  }

  /** The address of each controller for routers. */
  get addresses(): readonly string[] {
    return [...this.#addresses.values()]
  }

  /** Has a listener called after each change of the list. */
  onChange(listener: () => void): void {
    this.#listeners.push(listener)
  }

  get size(): number {
    return this.#addresses.size
  }

  /** The list as routers are told it; undefined if there is nothing to tell, because they would drop all controllers. */
  get announcement(): ControllerAnnouncement | undefined {
    if (this.#addresses.size === 0) return undefined
    const controllers = Array.from(this.#addresses, ([id, address]) => ({ id, address }))
    this.#announcement ??= { kind: 'controllers', version: this.#version, controllers }
    return this.#announcement
  }

  /** Tells a router where the controllers are, unless it is one that is connected to one of them at a time. */
  send({ hello, connection }: ConnectedRouter): void {
    if (!hello.isInTurn && this.announcement) connection.announce(this.announcement)
  }

  async restart(db: Kysely<Database>): Promise<void> {
    const rows = await db
      .selectFrom('controllers')
      .select(['id', 'ctrlAddress', 'node'])
      .where('node', 'is not', null)
      .orderBy('n')
      .execute()
    const [state] = await db.selectFrom('controller_list').select('version').execute()
    this.#addresses = new Map(rows.flatMap(({ id, ...record }) => toEntry(id, record)))
    this.#version = state?.version ?? 0
    this.#sendAll()
  }

  concerns(changes: readonly Change[]): boolean {
    return changes.some(isOfList)
  }

  async record({ position }: Omit<Commit, 'tables'>, db: Transaction<Database>): Promise<void> {
    await sql`insert into controller_list (id, version) values (1, ${position})
      on conflict (id) do update set version = excluded.version`.execute(db)
  }

  apply({ position, changes }: Commit): void {
    const ofList = changes.filter(isOfList)
    if (ofList.length === 0) return
    for (const { id, after } of ofList) {
      const [entry] = toEntry(id, after as Reachable | undefined)
      if (entry) this.#addresses.set(...entry)
      else this.#addresses.delete(id)
    }
    this.#version = position
    this.#sendAll()
  }

  #sendAll(): void {
    this.#announcement = undefined
    for (const listener of this.#listeners) listener()
    for (const router of this.#connected.list()) this.send(router)
  }
}

function isOfList(change: Change): boolean {
  if (change.resource !== 'controllers') return false
  if (change.operation === 'delete') return true
  const [before] = toEntry(change.id, change.before)
  const [after] = toEntry(change.id, change.after)
  return before?.[1] !== after?.[1]
}

function toEntry(id: string, record: Reachable | undefined): [id: string, address: string][] {
  return record?.node && record.ctrlAddress ? [[id, record.ctrlAddress]] : []
}
