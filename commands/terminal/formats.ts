// Prints results in the output formats.
import { CommandError, EXIT } from '../foundation/exit-codes.ts'
import type { OutputRecord, Screen } from './cells.ts'
import { colorMarks } from './colors.ts'
import { findColumns, orderColumns } from './columns.ts'
import { type Graph, renderGraphText } from './pictures/graph.ts'
import { renderRecordLines } from './record-lines.ts'
import { renderTable } from './table.ts'
import { escapeControls, escapeJson, escapeLines } from './text.ts'
import { toYamlText } from './yaml.ts'

export const formats = ['table', 'wide', 'csv', 'json', 'jsonl', 'yaml', 'name', 'jwt'] as const
/** The formats of pictures. */
export const pictureFormats = ['text', 'svg', 'dot', 'mermaid', 'json', 'yaml'] as const
/** The formats of lists that can also be drawn. */
export const drawnFormats = ['svg', 'dot', 'mermaid'] as const
export type Format = (typeof formats)[number] | (typeof pictureFormats)[number]

/** Whether a list that can also be drawn is to be drawn. */
export function isDrawn(format: Format | undefined): boolean {
  return drawnFormats.some((drawn) => drawn === format)
}

/** The result of a command. */
export type CommandResult =
  | { readonly kind: 'record'; readonly record: OutputRecord; readonly columns?: readonly string[] }
  /** `name` is the `kind` in JSON. */
  | {
      readonly kind: 'list'
      readonly name: string
      readonly items: AsyncIterable<unknown> | Iterable<unknown>
      readonly columns: readonly string[]
    }
  /** A sentence for people, and the same facts for programs. */
  | { readonly kind: 'done'; readonly sentence: string; readonly facts: OutputRecord }
  /** Nodes and arrows, which are drawn. */
  | { readonly kind: 'picture'; readonly graph: Graph }
  /** Text that is printed unchanged in every format. */
  | { readonly kind: 'text'; readonly text: string }
  /** The same, while it arrives. */
  | { readonly kind: 'pieces'; readonly pieces: AsyncIterable<string> }

/** The destination of a result. `write` settles when the destination accepts more. */
export interface Output extends Screen {
  write(text: string): Promise<void>
}

/** The part of a result that is printed. */
export interface Selection {
  /** A JMESPath expression. */
  readonly query?: string | undefined
  /** The columns of tables and of CSV. */
  readonly columns?: readonly string[] | undefined
  /** Whether CSV has cells that spreadsheets take for formulas. */
  readonly hasFormulas?: boolean | undefined
}

/** Prints the result. @throws CommandError with exit code 5 if the format is `jwt` and there is no JWT */
export async function printResult(
  result: CommandResult,
  format: Format,
  output: Output,
  { query, columns, hasFormulas = false }: Selection = {},
): Promise<void> {
  if (result.kind === 'text') return output.write(result.text.endsWith('\n') ? result.text : `${result.text}\n`)
  if (result.kind === 'pieces') {
    for await (const piece of result.pieces) await output.write(piece)
    return
  }
  if (result.kind === 'picture' && query === undefined) return printPicture(result.graph, format, output)
  const structured: StructuredResult =
    result.kind === 'picture' ? { kind: 'record', record: { ...result.graph } } : result
  if (query !== undefined) return printSelected(structured, query, format, output)
  switch (format) {
    case 'csv':
      return printCsv(structured, { columns, hasFormulas }, output)
    case 'json':
      return structured.kind === 'list'
        ? printJsonList(structured, output)
        : output.write(`${toJson(toEntity(structured), 2)}\n`)
    case 'jsonl':
      return printLines(listItems(structured), (item) => toJson(withoutLinks(item)), output)
    case 'yaml':
      return output.write(await toYamlText(await toStructure(structured)))
    case 'name':
      return printLines(listItems(structured), (item) => toNameLine(item, output), output)
    case 'jwt':
      return printJwts(structured, output)
    default:
      return printTable(structured, output, format === 'wide', columns)
  }
}

async function printPicture(graph: Graph, format: Format, output: Output): Promise<void> {
  switch (format) {
    case 'json':
      return output.write(`${toJson(graph, 2)}\n`)
    case 'yaml':
      return output.write(await toYamlText(graph))
    case 'svg': {
      const { renderSvg } = await import('./pictures/dot.ts')
      return output.write(await renderSvg(graph))
    }
    case 'dot': {
      const { renderDot } = await import('./pictures/dot.ts')
      return output.write(renderDot(graph))
    }
    case 'mermaid': {
      const { renderMermaid } = await import('./pictures/mermaid.ts')
      return output.write(renderMermaid(graph))
    }
    default: {
      const text = renderGraphText(graph)
      return output.write(`${output.hasColor ? colorMarks(text) : text}\n`)
    }
  }
}

/** Prints what a query selects: as JSON or YAML, or text as it is. */
async function printSelected(result: StructuredResult, query: string, format: Format, output: Output): Promise<void> {
  const { selectByQuery, toPlainLines } = await import('./query.ts')
  const selected = (await selectByQuery(query, await toStructure(result))) ?? null
  const lines = format === 'json' || format === 'jsonl' || format === 'yaml' ? undefined : toPlainLines(selected)
  if (lines) return output.write(lines.map((line) => `${output.isTerminal ? escapeControls(line) : line}\n`).join(''))
  if (format === 'yaml') return output.write(await toYamlText(selected))
  if (format === 'jsonl') return printLines([selected].flat(), (item) => toJson(item), output)
  return output.write(`${toJson(selected, 2)}\n`)
}

/** The result as one value, as JSON shows it. */
async function toStructure(result: StructuredResult): Promise<unknown> {
  return result.kind === 'list'
    ? { apiVersion: API_VERSION, kind: result.name, items: (await collectItems(result.items)).map(withoutLinks) }
    : toEntity(result)
}

/** Prints lines while the list arrives. */
async function printCsv(
  result: StructuredResult,
  { columns: names, hasFormulas = false }: Selection,
  output: Output,
): Promise<void> {
  const { renderCsvHeader, renderCsvLine } = await import('./csv.ts')
  const ownColumns = result.kind === 'done' ? [] : (result.columns ?? [])
  let columns = names ? undefined : ownColumns.length > 0 ? orderColumns(ownColumns, true) : undefined
  const toLine = (item: unknown) => {
    const record = isEntity(item) ? item : { value: item }
    const isFirst = columns === undefined
    columns ??= names ? findColumns(names, ownColumns, [record]) : listResultMembers([record])
    return `${isFirst ? renderCsvHeader(columns) : ''}${renderCsvLine(record, columns, output, hasFormulas)}`
  }
  if (columns) await output.write(renderCsvHeader(columns))
  await printLines(listItems(result), toLine, output, '')
}

type List = Extract<CommandResult, { kind: 'list' }>
type StructuredResult = Exclude<CommandResult, { kind: 'picture' | 'text' | 'pieces' }>

function toEntity(result: Exclude<StructuredResult, List>): OutputRecord {
  return result.kind === 'record' ? (withoutLinks(result.record) as OutputRecord) : result.facts
}

function listItems(result: StructuredResult): AsyncIterable<unknown> | Iterable<unknown> {
  return result.kind === 'list' ? result.items : [toEntity(result)]
}

/**
 * A value without the links that lead from request to request: a program that uses this one does not follow them. Values without
 * links are returned as they are, because lists are long.
 */
function withoutLinks(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.some(hasLinks) ? value.map(withoutLinks) : value
  if (!hasLinks(value)) return value
  const isLinks = (name: string, member: unknown) => name === '_links' && typeof member === 'object'
  const members = Object.entries(value).filter(([name, member]) => !isLinks(name, member))
  return Object.fromEntries(members.map(([name, member]) => [name, withoutLinks(member)]))
}

function hasLinks(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  if (Array.isArray(value)) return value.some(hasLinks)
  for (const [name, member] of Object.entries(value)) {
    if (typeof member === 'object' && (name === '_links' || hasLinks(member))) return true
  }
  return false
}

function toJson(value: unknown, indent?: number): string {
  return escapeJson(JSON.stringify(value, null, indent))
}

const API_VERSION = 'v1'

async function printJsonList({ name, items }: List, output: Output): Promise<void> {
  const head = `{\n  "apiVersion": ${toJson(API_VERSION)},\n  "kind": ${toJson(name)},\n  "items": [`
  // The head is written with the first item, so that a rejected list leaves stdout empty.
  let before = head
  await printLines(
    items,
    (item) => {
      const text = `${before}\n    ${toJson(withoutLinks(item), 2).replaceAll('\n', '\n    ')}`
      before = ','
      return text
    },
    output,
    '',
  )
  await output.write(before === head ? `${head}]\n}\n` : '\n  ]\n}\n')
}

// Large enough that the cost of writing is small, small enough to use little memory.
const CHUNK_LENGTH = 65_536

/** Writes items in chunks, so that memory does not grow with the length of the list. */
async function printLines(
  items: AsyncIterable<unknown> | Iterable<unknown>,
  render: (item: unknown) => string,
  output: Output,
  end = '\n',
): Promise<void> {
  let chunk = ''
  for await (const item of items) {
    chunk += render(item) + end
    if (chunk.length < CHUNK_LENGTH) continue
    await output.write(chunk)
    chunk = ''
  }
  if (chunk !== '') await output.write(chunk)
}

async function collectItems(items: AsyncIterable<unknown> | Iterable<unknown>): Promise<unknown[]> {
  const all: unknown[] = []
  for await (const item of items) all.push(item)
  return all
}

/** The name, else the id; control characters are replaced on a terminal only. */
function toNameLine(item: unknown, { isTerminal }: Output): string {
  const { name, id } = (typeof item === 'object' && item !== null ? item : { name: item }) as OutputRecord
  const text = String(name ?? id ?? '')
  return isTerminal ? escapeControls(text) : text
}

async function printJwts(result: StructuredResult, output: Output): Promise<void> {
  let jwtCount = 0
  for await (const item of listItems(result)) {
    const jwt = findJwt(item as OutputRecord)
    if (jwt === undefined) continue
    jwtCount++
    await output.write(`${jwt}\n`)
  }
  if (jwtCount > 0) return
  throw noJwtError()
}

/** The error if no record of a result has an enrollment JWT. */
export function noJwtError(): CommandError {
  return new CommandError(
    EXIT.notFound,
    'NO_JWT',
    'there is no enrollment JWT: the record has no outstanding enrollment',
    {
      hint: 'controller enrollment create --help',
    },
  )
}

/** The enrollment JWT of a record, from any member that can contain one. */
export function findJwt(record: OutputRecord): string | undefined {
  const outstanding = Object.values((record.enrollment ?? {}) as Record<string, unknown>)
  const candidates = [
    record.jwt,
    record.enrollmentJwt,
    record.token,
    ...outstanding.map((enrollment) => (enrollment as OutputRecord | null)?.jwt),
  ]
  return candidates.find((text): text is string => typeof text === 'string' && /^[\w-]+\.[\w-]+\.[\w-]+$/.test(text))
}

async function printTable(
  result: StructuredResult,
  output: Output,
  isWide: boolean,
  names: readonly string[] | undefined,
): Promise<void> {
  if (result.kind === 'done') {
    const text = escapeLines(result.sentence)
    return output.write(`${output.hasColor ? colorMarks(text) : text}\n`)
  }
  if (result.kind === 'list') return output.write(await renderListTable(result, output, isWide, names))
  const { record, columns } = result
  if (!columns && !names) return output.write(renderRecordLines(record, output, isWide))
  const visibleColumns = names ? findColumns(names, columns ?? [], [record]) : orderColumns(columns ?? [], isWide)
  return output.write(await renderTable([record], visibleColumns, output, isWide))
}

async function renderListTable(
  { items, columns }: List,
  output: Output,
  isWide: boolean,
  names: readonly string[] | undefined,
): Promise<string> {
  if (columns.length > 0 && !names)
    return renderTable(items as AsyncIterable<OutputRecord>, orderColumns(columns, isWide), output, isWide)
  const rows = (await collectItems(items)).map((item) => (isEntity(item) ? item : { value: item }))
  const visibleColumns = names ? findColumns(names, columns, rows) : orderColumns(listResultMembers(rows), isWide)
  return renderTable(rows, visibleColumns, output, isWide)
}

/** The members of items that are not records of a resource. */
function listResultMembers(rows: readonly OutputRecord[]): string[] {
  return [...new Set(rows.flatMap((row) => Object.keys(row)))].filter((name) => !HIDDEN_MEMBERS.has(name))
}

// Members of every record that are least useful in a table.
const HIDDEN_MEMBERS = new Set(['_links', 'createdAt', 'updatedAt', 'tags'])

function isEntity(item: unknown): item is OutputRecord {
  return typeof item === 'object' && item !== null && !Array.isArray(item)
}
