// The conversion of records: what all kinds of them need, and the table's form.
import type { AnyResource } from '../definitions/resources/define.ts'
import type { AdoptionNotes } from './adoption-notes.ts'
import type { SourceRecord } from './source-records.ts'
import type { PlainValue } from './typed-values.ts'

/** The fields of a record by their names, and its id if it is another than that of the former record. */
export interface ConvertedRecord {
  readonly resource: AnyResource
  readonly id: string
  readonly fields: Readonly<Record<string, unknown>>
}

/** Converts the records of one kind. */
export interface KindConversion {
  /** The name of the kind in the former database. */
  readonly kind: string
  /** Returns the records that a former record becomes: none if it cannot be adopted, which a note says. */
  convert(id: string, record: SourceRecord, conversion: Conversion): readonly ConvertedRecord[]
}

type Tags = Readonly<Record<string, PlainValue>>

/** The state of a conversion: the records that were adopted before, and what they lack. */
export class Conversion {
  readonly notes: AdoptionNotes
  readonly now: number
  /** Encrypts a secret for its place. */
  readonly encrypt: (plaintext: string, place: { resource: string; id: string; field: string }) => string
  readonly #ids = new Map<string, Set<string>>()
  /** The roles that would have matched posture checks which were not adopted. */
  readonly lostCheckRoles = new Set<string>()

  constructor(notes: AdoptionNotes, now: number, encrypt: Conversion['encrypt']) {
    this.notes = notes
    this.now = now
    this.encrypt = encrypt
  }

  /** Notes that a record exists. Edge routers are routers, too. */
  addId(plural: string, id: string): void {
    const ids = this.#ids.get(plural)
    if (ids) ids.add(id)
    else this.#ids.set(plural, new Set([id]))
  }

  hasId(plural: string, id: string | null): id is string {
    return id !== null && this.#ids.get(plural)?.has(id) === true
  }

  /** How many records of a resource were adopted. */
  count(plural: string): number {
    return this.#ids.get(plural)?.size ?? 0
  }

  note(kind: string, id: string, record: SourceRecord, problem: string): void {
    this.notes.add(kind, id, describeName(record), problem)
  }

  /** Returns the ids of records that exist, and notes the others. */
  keepIds(kind: string, id: string, record: SourceRecord, plural: string, ids: readonly string[]): string[] {
    return ids.filter((each) => {
      if (this.hasId(plural, each)) return true
      this.note(kind, id, record, `refers to ${plural} ${each}, which does not exist: the reference is left out`)
      return false
    })
  }

  /** Returns the roles without those that name records which do not exist. */
  keepRoles(kind: string, id: string, record: SourceRecord, plural: string, member: string): string[] {
    return record.set(member).filter((role) => {
      if (!role.startsWith('@') || this.hasId(plural, role.slice(1))) return true
      this.note(kind, id, record, `the role ${role} in ${member} names no record: it is left out`)
      return false
    })
  }

  /** Returns the members whose values are single ones. */
  keepScalars(kind: string, id: string, record: SourceRecord, member: string): Tags {
    const entries = Object.entries(record.map(member)).filter(([name, value]) => {
      if (typeof value !== 'object' || value === null) return true
      this.note(kind, id, record, `the value of ${name} in ${member} is not a single one: it is left out`)
      return false
    })
    return Object.fromEntries(entries)
  }
}

/** The name of a record in messages; what else tells it if it has none. */
export function describeName(record: SourceRecord): string {
  for (const member of ['name', 'updbUsername', 'method', 'binding']) {
    if (!record.has(member)) continue
    const value = record.text(member)
    if (value) return value
  }
  return ''
}
