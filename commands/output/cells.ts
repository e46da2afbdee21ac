// How values look in a table: for people on a terminal, for programs everywhere else.
import { isInstant, toTimeText } from '../times.ts'
import { escapeControls } from './text.ts'

export type Entity = Readonly<Record<string, unknown>>

/** Where a table goes. */
export interface Screen {
  readonly isTerminal: boolean
  /** In characters; only a terminal has one. */
  readonly width: number
  readonly hasColour: boolean
}

/** The members by which a state is told, and which of their values is the good one. */
const STATES: Readonly<Record<string, boolean>> = {
  isOnline: true,
  isVerified: true,
  enabled: true,
  hasEdgeRouterConnection: true,
  disabled: false,
}

/** One value as a single line. */
export function renderCell(name: string, value: unknown, screen: Screen): string {
  const good = STATES[name]
  // Offline nobody can tell.
  const isUnknown = value === null && good !== undefined
  const text = isUnknown ? 'unknown' : escapeControls(plain(value, screen))
  return screen.hasColour && good !== undefined && typeof value === 'boolean' ? painted(text, value === good) : text
}

function plain(value: unknown, screen: Screen): string {
  if (value === null || value === undefined || value === '') return '-'
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  if (typeof value === 'string') return screen.isTerminal && isInstant(value) ? toTimeText(value) : value
  if (Array.isArray(value)) return value.length === 0 ? '-' : value.map((one) => plain(one, screen)).join(', ')
  if (typeof value === 'object') return toName(value as Entity) ?? JSON.stringify(value)
  return String(value)
}

// What references to records consist of, and the entries of display lists.
const REFERENCE_MEMBERS = new Set(['_links', 'entity', 'id', 'name', 'role', 'urlName'])

/** The name of a reference to a record, or of an entry of a display list; nothing for what holds more than that. */
export function toName(value: Entity): string | undefined {
  if (Object.keys(value).some((member) => !REFERENCE_MEMBERS.has(member))) return undefined
  return [value.name, value.id].find((text): text is string => typeof text === 'string')
}

/** What a column shows of a record; roles with names in place of ids. */
export function getColumnValue(entity: Entity, name: string): unknown {
  return entity[`${name}Display`] ?? entity[name]
}

/** `roleAttributes` → `role attributes`. */
export function splitWords(name: string, separator: string): string {
  return name.replace(/[A-Z]/g, (letter) => `${separator}${letter.toLowerCase()}`)
}

function painted(text: string, isGood: boolean): string {
  return `\u001b[${isGood ? 32 : 31}m${text}\u001b[39m`
}
