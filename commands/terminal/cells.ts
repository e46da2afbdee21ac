// Renders the values of table cells: for people on a terminal, otherwise for programs.

import { isInstant, toTimeText } from '../foundation/times.ts'
import { colorText } from './colors.ts'
import { escapeControls } from './text.ts'

export type OutputRecord = Readonly<Record<string, unknown>>

/** The properties of the output of a table. */
export interface Screen {
  readonly isTerminal: boolean
  /** The width of the terminal in characters. */
  readonly width: number
  readonly hasColor: boolean
}

/** The members that show a state, with their good value. */
const GOOD_VALUES: Readonly<Record<string, boolean>> = {
  isOnline: true,
  isVerified: true,
  enabled: true,
  hasEdgeRouterConnection: true,
  disabled: false,
}

// The API's value for a time that does not exist, such as that of a certificate which a record does not have.
const NO_TIME = '0001-01-01T00:00:00.000Z'

// The member with what is allowed now: nothing, which is not the same as a value that is missing.
const RIGHTS_MEMBER = 'allowed'

/** The members that may have very many entries, of which a table shows the first. */
const MAX_ENTRIES: Readonly<Record<string, number>> = { routerNames: 5 }

/** Whether a member without a value says something: that a state is unknown, or that nothing is allowed. */
export function hasEmptyState(name: string): boolean {
  return name === RIGHTS_MEMBER || GOOD_VALUES[name] !== undefined
}

/** One value as a single line. */
export function renderCell(name: string, value: unknown, screen: Screen): string {
  if (name === RIGHTS_MEMBER && Array.isArray(value) && value.length === 0) return 'none'
  const goodValue = GOOD_VALUES[name]
  // Without a running controller, states are null.
  const isUnknown = value === null && goodValue !== undefined
  const text = isUnknown ? 'unknown' : escapeControls(toPlainText(shorten(value, MAX_ENTRIES[name]), screen))
  return screen.hasColor && goodValue !== undefined && typeof value === 'boolean'
    ? colorText(text, value === goodValue ? 'green' : 'red')
    : text
}

function shorten(value: unknown, max = Number.POSITIVE_INFINITY): unknown {
  if (!Array.isArray(value) || value.length <= max) return value
  return [...value.slice(0, max), `and ${value.length - max} more`]
}

function toPlainText(value: unknown, screen: Screen): string {
  if (value === null || value === undefined || value === '' || value === NO_TIME) return '-'
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  if (typeof value === 'string') return screen.isTerminal && isInstant(value) ? toTimeText(value) : value
  if (Array.isArray(value)) return value.length === 0 ? '-' : value.map((item) => toPlainText(item, screen)).join(', ')
  if (typeof value === 'object') return toName(value as OutputRecord) ?? JSON.stringify(value)
  return String(value)
}

// The members of references and of entries of display lists.
const REFERENCE_MEMBERS = new Set(['_links', 'entity', 'id', 'name', 'role', 'urlName'])

/** The name, else the id, of a reference or an entry of a display list; undefined if the value has other members. */
export function toName(value: OutputRecord): string | undefined {
  if (Object.keys(value).some((member) => !REFERENCE_MEMBERS.has(member))) return undefined
  return [value.name, value.id].find((text): text is string => typeof text === 'string')
}

/** The value of a column; roles show names instead of ids. */
export function getColumnValue(entity: OutputRecord, name: string): unknown {
  return entity[`${name}Display`] ?? entity[name]
}

/** `roleAttributes` → `role attributes`. */
export function splitWords(name: string, separator: string): string {
  return name.replace(/[A-Z]/g, (letter) => `${separator}${letter.toLowerCase()}`)
}
