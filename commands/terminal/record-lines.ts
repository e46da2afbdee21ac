// Renders one record for people: a line per member, with texts of several lines and nested values below their labels.
import {
  getColumnValue,
  hasEmptyState,
  type OutputRecord,
  renderCell,
  type Screen,
  splitWords,
  toName,
} from './cells.ts'
import { escapeControls } from './text.ts'

interface Line {
  readonly label: string
  /** Empty if what belongs to the label is in the lines below it. */
  readonly value: string
}

const INDENT = '  '

/** The members whose own members are named by users or by other programs, so that their spelling counts. */
const FREE_MEMBERS = new Set([
  'appData',
  'config',
  'data',
  'schema',
  'serviceHostingCosts',
  'serviceHostingPrecedences',
  'tags',
])

const PEM = /^-----BEGIN [A-Z ]+-----\n/
// The header is a JSON object in base64url.
const JWT = /^eyJ[\w-]+\.[\w-]+\.[\w-]+$/

/**
 * A record with one line per member, the name first; what does not fit in a line is indented below its label. Unless it is wide,
 * members without a value are only named, in the last line, and certificates and tokens are left to the format that prints them.
 */
export function renderRecordLines(record: OutputRecord, screen: Screen, isWide: boolean): string {
  const { name, ...others } = record
  const ordered = name === undefined ? record : { name, ...others }
  const lines = isWide ? listMemberLines(ordered, '', screen) : listShortLines(ordered, screen)
  const width = Math.max(0, ...lines.map(({ label, value }) => (value === '' ? 0 : label.length)))
  return lines
    .map(({ label, value }) => (value === '' ? label : `${label.padEnd(width)}  ${value}`).trimEnd())
    .join('\n')
    .concat('\n')
}

function listShortLines(record: OutputRecord, screen: Screen): Line[] {
  const members = Object.entries(record)
  const isUnset = ([name, value]: readonly [string, unknown]) => isEmpty(value) && !hasEmptyState(name)
  const present = members
    .filter((member) => !isUnset(member))
    .map(([name, value]) => [name, toShortValue(value)] as const)
  const unset = members.filter((member) => isUnset(member)).map(([name]) => name)
  const lines = listMemberLines(Object.fromEntries(present), '', screen)
  const labels = unset.filter((name) => !isHidden(record, name)).map((name) => splitWords(name, ' '))
  return labels.length === 0 ? lines : [...lines, { label: 'not set', value: labels.join(', ') }]
}

/** Whether there is nothing to show: no value, or an object of such values. */
function isEmpty(value: unknown): boolean {
  if (value === null || value === undefined || value === '') return true
  if (Array.isArray(value)) return value.length === 0
  return isObject(value) && Object.values(value).every(isEmpty)
}

/** A value with its certificates and tokens replaced by where to see them. */
function toShortValue(value: unknown): unknown {
  if (typeof value === 'string') {
    if (PEM.test(value)) return '(-o wide shows it)'
    return JWT.test(value) ? '(-o jwt prints it)' : value
  }
  if (!isNested(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, toShortValue(member)]))
}

function listMemberLines(record: OutputRecord, indent: string, screen: Screen): Line[] {
  return Object.keys(record).flatMap((name) => {
    if (isHidden(record, name)) return []
    const value = toInstant(name, getColumnValue(record, name))
    const label = indent + escapeControls(splitWords(name, ' '))
    const listLines = FREE_MEMBERS.has(name) ? listFreeLines : listInnerLines
    const lines = listLines(value, indent + INDENT, screen)
    if (lines) return [{ label, value: '' }, ...lines]
    const id = isObject(value) ? value.id : undefined
    const text = renderCell(name, value, screen)
    return [{ label, value: id === undefined || id === text ? text : `${text} (${String(id)})` }]
  })
}

/** The lines of an object with names of its own: all of them, as they are spelled. Undefined if the value fits in one line. */
function listFreeLines(value: unknown, indent: string, screen: Screen): Line[] | undefined {
  if (!isObject(value) || Object.keys(value).length === 0) return listItemLines(value, indent, screen, listFreeLines)
  return Object.entries(value).flatMap(([name, member]) => {
    const label = indent + escapeControls(name)
    const lines = listFreeLines(member, indent + INDENT, screen)
    return lines ? [{ label, value: '' }, ...lines] : [{ label, value: renderCell('', member, screen) }]
  })
}

/** The lines of a value that does not fit in one; undefined if it does. */
function listInnerLines(value: unknown, indent: string, screen: Screen): Line[] | undefined {
  return isNested(value) ? listMemberLines(value, indent, screen) : listItemLines(value, indent, screen, listInnerLines)
}

/** The lines of a long text, or of a list with items that do not fit in one; undefined for other values. */
function listItemLines(
  value: unknown,
  indent: string,
  screen: Screen,
  listLines: (item: unknown, indent: string, screen: Screen) => Line[] | undefined,
): Line[] | undefined {
  if (isLongText(value)) {
    const lines = value.trimEnd().split('\n')
    return lines.map((line) => ({ label: indent + escapeControls(line.trimEnd()), value: '' }))
  }
  if (!Array.isArray(value)) return undefined
  const items = value.map((item) => ({ item, lines: listLines(item, indent + INDENT, screen) }))
  if (items.every(({ lines }) => lines === undefined)) return undefined
  return items.flatMap(({ item, lines }, at) => {
    const label = `${indent}${at + 1}`
    return lines ? [{ label, value: '' }, ...lines] : [{ label, value: renderCell('', item, screen) }]
  })
}

/** Records of the audit hold rows of the database, in which a time is a number of milliseconds. */
function toInstant(name: string, value: unknown): unknown {
  return typeof value === 'number' && /(?:At|Until)$/.test(name) ? new Date(value).toISOString() : value
}

function isLongText(value: unknown): value is string {
  return typeof value === 'string' && value.trimEnd().includes('\n')
}

function isObject(value: unknown): value is OutputRecord {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Whether the value is an object with members that is not a reference to a record. */
function isNested(value: unknown): value is OutputRecord {
  return isObject(value) && toName(value) === undefined && Object.keys(value).length > 0
}

/** Links are for programs. Display lists are shown as the values of their roles, ids of references beside their names. */
function isHidden(record: OutputRecord, name: string): boolean {
  return name === '_links' || name.endsWith('Display') || isIdOfReference(record, name)
}

/** Whether the member only repeats the id of a reference that another member shows: `authPolicyId` beside `authPolicy`. */
function isIdOfReference(record: OutputRecord, name: string): boolean {
  const [, reference] = /^(.+)Id$/.exec(name) ?? []
  const value = reference === undefined ? undefined : record[reference]
  return isObject(value) && value.id === record[name]
}
