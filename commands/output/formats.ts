// Prints results in the output formats.
import { CommandError, EXIT } from '../exit-codes.ts'
import type { Entity, Screen } from './cells.ts'
import { renderRecordLines, renderTable } from './table.ts'
import { escapeControls, escapeJson, hasControls } from './text.ts'

export const formats = ['table', 'json', 'jsonl', 'yaml', 'name', 'jwt'] as const
export type Format = (typeof formats)[number]

/** The result of a command. */
export type Result =
  | { readonly kind: 'record'; readonly record: Entity; readonly columns?: readonly string[] }
  /** `name` is the `kind` in JSON. */
  | {
      readonly kind: 'list'
      readonly name: string
      readonly items: AsyncIterable<unknown> | Iterable<unknown>
      readonly columns: readonly string[]
    }
  /** A sentence for people, and the same facts for programs. */
  | { readonly kind: 'done'; readonly sentence: string; readonly facts: Entity }
  /** Text that is printed unchanged in every format. */
  | { readonly kind: 'text'; readonly text: string }

/** The destination of a result. `write` settles when the destination accepts more. */
export interface Output extends Screen {
  write(text: string): Promise<void>
}

/** Prints the result. @throws CommandError with exit code 5 if the format is `jwt` and there is no JWT */
export async function printResult(result: Result, format: Format, output: Output): Promise<void> {
  if (result.kind === 'text') return output.write(result.text.endsWith('\n') ? result.text : `${result.text}\n`)
  switch (format) {
    case 'json':
      return result.kind === 'list' ? printJsonList(result, output) : output.write(`${toJson(toEntity(result), 2)}\n`)
    case 'jsonl':
      return printLines(listItems(result), (item) => toJson(item), output)
    case 'yaml':
      return output.write(await toYaml(result))
    case 'name':
      return printLines(listItems(result), (item) => toNameLine(item, output), output)
    case 'jwt':
      return printJwts(result, output)
    case 'table':
      return printTable(result, output)
  }
}

type List = Extract<Result, { kind: 'list' }>
type StructuredResult = Exclude<Result, { kind: 'text' }>

function toEntity(result: Exclude<StructuredResult, List>): Entity {
  return result.kind === 'record' ? (withoutLinks(result.record) as Entity) : result.facts
}

function listItems(result: StructuredResult): AsyncIterable<unknown> | Iterable<unknown> {
  return result.kind === 'list' ? dropLinks(result.items) : [toEntity(result)]
}

async function* dropLinks(items: AsyncIterable<unknown> | Iterable<unknown>): AsyncIterable<unknown> {
  for await (const item of items) yield withoutLinks(item)
}

/** A value without the links that lead from request to request: a program that uses this one does not follow them. */
function withoutLinks(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutLinks)
  if (typeof value !== 'object' || value === null) return value
  const isLinks = (name: string, member: unknown) => name === '_links' && typeof member === 'object'
  const members = Object.entries(value).filter(([name, member]) => !isLinks(name, member))
  return Object.fromEntries(members.map(([name, member]) => [name, withoutLinks(member)]))
}

function toJson(value: unknown, indent?: number): string {
  return escapeJson(JSON.stringify(value, null, indent))
}

const API_VERSION = 'v1'

async function printJsonList({ name, ...list }: List, output: Output): Promise<void> {
  const head = `{\n  "apiVersion": ${toJson(API_VERSION)},\n  "kind": ${toJson(name)},\n  "items": [`
  // The head is written with the first item, so that a rejected list leaves stdout empty.
  let before = head
  await printLines(
    dropLinks(list.items),
    (item) => {
      const text = `${before}\n    ${toJson(item, 2).replaceAll('\n', '\n    ')}`
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

async function toYaml(result: StructuredResult): Promise<string> {
  const { Document, visit } = await import('yaml')
  const value =
    result.kind === 'list'
      ? { apiVersion: API_VERSION, kind: result.name, items: await collectItems(dropLinks(result.items)) }
      : toEntity(result)
  const document = new Document(value)
  // Control characters can be escaped in double-quoted scalars only.
  visit(document, {
    Scalar(_key, node) {
      if (typeof node.value === 'string' && hasControls(node.value.replace(/[\n\t]/g, ''))) node.type = 'QUOTE_DOUBLE'
    },
  })
  return escapeJson(document.toString())
}

async function collectItems(items: AsyncIterable<unknown> | Iterable<unknown>): Promise<unknown[]> {
  const all: unknown[] = []
  for await (const item of items) all.push(item)
  return all
}

/** The name, else the id; control characters are replaced on a terminal only. */
function toNameLine(item: unknown, { isTerminal }: Output): string {
  const { name, id } = (typeof item === 'object' && item !== null ? item : { name: item }) as Entity
  const text = String(name ?? id ?? '')
  return isTerminal ? escapeControls(text) : text
}

async function printJwts(result: StructuredResult, output: Output): Promise<void> {
  let jwtCount = 0
  for await (const item of listItems(result)) {
    const jwt = findJwt(item as Entity)
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
export function findJwt(record: Entity): string | undefined {
  const outstanding = Object.values((record.enrollment ?? {}) as Record<string, unknown>)
  const candidates = [
    record.jwt,
    record.enrollmentJwt,
    record.token,
    ...outstanding.map((enrollment) => (enrollment as Entity | null)?.jwt),
  ]
  return candidates.find((text): text is string => typeof text === 'string' && /^[\w-]+\.[\w-]+\.[\w-]+$/.test(text))
}

async function printTable(result: StructuredResult, output: Output): Promise<void> {
  switch (result.kind) {
    case 'done':
      return output.write(`${result.sentence}\n`)
    case 'record':
      return output.write(
        result.columns
          ? await renderTable([result.record], result.columns, output)
          : renderRecordLines(result.record, output),
      )
    case 'list':
      return output.write(await renderListTable(result, output))
  }
}

async function renderListTable({ items, columns }: List, output: Output): Promise<string> {
  if (columns.length > 0) return renderTable(items as AsyncIterable<Entity>, columns, output)
  // Items that are not records of a resource: all their members.
  const rows = (await collectItems(items)).map((item) => (isEntity(item) ? item : { value: item }))
  const members = new Set(['id', 'name', ...rows.flatMap((row) => Object.keys(row))])
  const visibleMembers = [...members].filter((name) => !HIDDEN_MEMBERS.has(name) && rows.some((row) => name in row))
  return renderTable(rows, visibleMembers, output)
}

// Members of every record that are least useful in a table.
const HIDDEN_MEMBERS = new Set(['_links', 'createdAt', 'updatedAt', 'tags'])

function isEntity(item: unknown): item is Entity {
  return typeof item === 'object' && item !== null && !Array.isArray(item)
}
