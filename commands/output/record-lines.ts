// Renders one record for people: a line per member, with texts of several lines and nested values below their labels.
import { type Entity, getColumnValue, renderCell, type Screen, splitWords, toName } from './cells.ts'
import { escapeControls } from './text.ts'

interface Line {
  readonly label: string
  /** Empty if what belongs to the label is in the lines below it. */
  readonly value: string
}

const INDENT = '  '

/** A record with one line per member, the name first; what does not fit in a line is indented below its label. */
export function renderRecordLines(record: Entity, screen: Screen): string {
  const { name, ...others } = record
  const lines = listMemberLines(name === undefined ? record : { name, ...others }, '', screen)
  const width = Math.max(0, ...lines.map(({ label, value }) => (value === '' ? 0 : label.length)))
  return lines
    .map(({ label, value }) => (value === '' ? label : `${label.padEnd(width)}  ${value}`).trimEnd())
    .join('\n')
    .concat('\n')
}

function listMemberLines(record: Entity, indent: string, screen: Screen): Line[] {
  return Object.keys(record).flatMap((name) => {
    // Links are for programs. Display lists are shown as the values of their roles, ids of references beside their names.
    if (name === '_links' || name.endsWith('Display') || isIdOfReference(record, name)) return []
    const value = getColumnValue(record, name)
    const label = indent + splitWords(name, ' ')
    const lines = listInnerLines(value, indent + INDENT, screen)
    if (lines) return [{ label, value: '' }, ...lines]
    const id = isObject(value) ? value.id : undefined
    const text = renderCell(name, value, screen)
    return [{ label, value: id === undefined || id === text ? text : `${text} (${String(id)})` }]
  })
}

/** The lines of a value that does not fit in one; undefined if it does. */
function listInnerLines(value: unknown, indent: string, screen: Screen): Line[] | undefined {
  if (isLongText(value)) {
    const lines = value.trimEnd().split('\n')
    return lines.map((line) => ({ label: indent + escapeControls(line.trimEnd()), value: '' }))
  }
  if (isNested(value)) return listMemberLines(value, indent, screen)
  if (!Array.isArray(value) || !value.some((item) => isLongText(item) || isNested(item))) return undefined
  return value.flatMap((item, at) => {
    const label = `${indent}${at + 1}`
    const lines = listInnerLines(item, indent + INDENT, screen)
    return lines ? [{ label, value: '' }, ...lines] : [{ label, value: renderCell('', item, screen) }]
  })
}

function isLongText(value: unknown): value is string {
  return typeof value === 'string' && value.trimEnd().includes('\n')
}

function isObject(value: unknown): value is Entity {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Whether the value is an object with members that is not a reference to a record. */
function isNested(value: unknown): value is Entity {
  return isObject(value) && toName(value) === undefined && Object.keys(value).length > 0
}

/** Whether the member only repeats the id of a reference that another member shows: `authPolicyId` beside `authPolicy`. */
function isIdOfReference(record: Entity, name: string): boolean {
  const [, reference] = /^(.+)Id$/.exec(name) ?? []
  const value = reference === undefined ? undefined : record[reference]
  return isObject(value) && value.id === record[name]
}
