// The forms in which a result is printed: stdout carries it, and nothing else.
import { CommandError, EXIT } from '../exit-codes.ts'
import type { Entity, Screen } from './cells.ts'
import { renderRecord, renderTable } from './table.ts'
import { escapeControls, escapeJson, hasControls } from './text.ts'

export const formats = ['table', 'json', 'jsonl', 'yaml', 'name', 'jwt'] as const
export type Format = (typeof formats)[number]

/** What a command found or made. */
export type Result =
  | { readonly kind: 'record'; readonly record: Entity; readonly columns?: readonly string[] }
  /** `name` is what `kind` says in JSON. Items that are no objects are shown as they are. */
  | {
      readonly kind: 'list'
      readonly name: string
      readonly items: AsyncIterable<unknown> | Iterable<unknown>
      readonly columns: readonly string[]
    }
  /** A sentence for people, with what a program would want to know. */
  | { readonly kind: 'done'; readonly sentence: string; readonly facts: Entity }
  /** Text that is a document of its own. */
  | { readonly kind: 'text'; readonly text: string }

/** Where a result goes. `write` settles once there is room for more. */
export interface Output extends Screen {
  write(text: string): Promise<void>
}

export async function printResult(result: Result, format: Format, output: Output): Promise<void> {
  if (result.kind === 'text') return output.write(result.text.endsWith('\n') ? result.text : `${result.text}\n`)
  switch (format) {
    case 'json':
      return result.kind === 'list' ? printJsonList(result, output) : output.write(`${json(plain(result), 2)}\n`)
    case 'jsonl':
      return printLines(items(result), (item) => json(item), output)
    case 'yaml':
      return output.write(await yaml(result))
    case 'name':
      return printLines(items(result), (item) => nameLine(item, output), output)
    case 'jwt':
      return printJwts(result, output)
    case 'table':
      return printTable(result, output)
  }
}

type List = Extract<Result, { kind: 'list' }>
type NoText = Exclude<Result, { kind: 'text' }>

function plain(result: Exclude<NoText, List>): Entity {
  return result.kind === 'record' ? result.record : result.facts
}

function items(result: NoText): AsyncIterable<unknown> | Iterable<unknown> {
  return result.kind === 'list' ? result.items : [plain(result)]
}

function json(value: unknown, indent?: number): string {
  return escapeJson(JSON.stringify(value, null, indent))
}

const API_VERSION = 'v1'

async function printJsonList({ name, items }: List, output: Output): Promise<void> {
  const head = `{\n  "apiVersion": ${json(API_VERSION)},\n  "kind": ${json(name)},\n  "items": [`
  // The head comes with the first item: a list that is refused leaves stdout empty.
  let before = head
  await printLines(
    items,
    (item) => {
      const text = `${before}\n    ${json(item, 2).replaceAll('\n', '\n    ')}`
      before = ','
      return text
    },
    output,
    '',
  )
  await output.write(before === head ? `${head}]\n}\n` : '\n  ]\n}\n')
}

// Large enough that writing costs nothing beside making the text, small enough to be nothing in memory.
const CHUNK = 65_536

/** One item after the other, in pieces: a list of any length needs no more memory than one piece. */
async function printLines(
  items: AsyncIterable<unknown> | Iterable<unknown>,
  text: (item: unknown) => string,
  output: Output,
  end = '\n',
): Promise<void> {
  let waiting = ''
  for await (const item of items) {
    waiting += text(item) + end
    if (waiting.length < CHUNK) continue
    await output.write(waiting)
    waiting = ''
  }
  if (waiting !== '') await output.write(waiting)
}

async function yaml(result: NoText): Promise<string> {
  const { Document, visit } = await import('yaml')
  const value =
    result.kind === 'list'
      ? { apiVersion: API_VERSION, kind: result.name, items: await collected(result.items) }
      : plain(result)
  const document = new Document(value)
  // Inside double quotes, what a terminal would act on can be escaped.
  visit(document, {
    Scalar(_key, node) {
      if (typeof node.value === 'string' && hasControls(node.value.replace(/[\n\t]/g, ''))) node.type = 'QUOTE_DOUBLE'
    },
  })
  return escapeJson(document.toString())
}

async function collected(items: AsyncIterable<unknown> | Iterable<unknown>): Promise<unknown[]> {
  const all: unknown[] = []
  for await (const item of items) all.push(item)
  return all
}

/** A program gets the very name; on a terminal it is made harmless. */
function nameLine(item: unknown, { isTerminal }: Output): string {
  const { name, id } = (typeof item === 'object' && item !== null ? item : { name: item }) as Entity
  const text = String(name ?? id ?? '')
  return isTerminal ? escapeControls(text) : text
}

async function printJwts(result: NoText, output: Output): Promise<void> {
  let found = 0
  for await (const item of items(result)) {
    const jwt = findJwt(item as Entity)
    if (jwt === undefined) continue
    found++
    await output.write(`${jwt}\n`)
  }
  if (found > 0) return
  throw noJwtError()
}

export function noJwtError(): CommandError {
  return new CommandError(EXIT.notFound, 'NO_JWT', 'there is no JWT here: nothing waits to be enrolled', {
    hint: 'controller enrollment create --help',
  })
}

/** The enrollment JWT of a record, wherever it carries one. */
export function findJwt(record: Entity): string | undefined {
  const outstanding = Object.values((record.enrollment ?? {}) as Record<string, unknown>)
  const candidates = [
    record.jwt,
    record.enrollmentJwt,
    record.token,
    ...outstanding.map((one) => (one as Entity | null)?.jwt),
  ]
  return candidates.find((text): text is string => typeof text === 'string' && /^[\w-]+\.[\w-]+\.[\w-]+$/.test(text))
}

async function printTable(result: NoText, output: Output): Promise<void> {
  switch (result.kind) {
    case 'done':
      return output.write(`${result.sentence}\n`)
    case 'record':
      return output.write(
        result.columns
          ? await renderTable([result.record], result.columns, output)
          : renderRecord(result.record, output),
      )
    case 'list':
      return output.write(await listTable(result, output))
  }
}

async function listTable({ items, columns }: List, output: Output): Promise<string> {
  if (columns.length > 0) return renderTable(items as AsyncIterable<Entity>, columns, output)
  // Items of no resource: whatever members they have.
  const rows = (await collected(items)).map((item) => (isEntity(item) ? item : { value: item }))
  const members = new Set(['id', 'name', ...rows.flatMap((row) => Object.keys(row))])
  const shown = [...members].filter((name) => !OF_NO_INTEREST.has(name) && rows.some((row) => name in row))
  return renderTable(rows, shown, output)
}

// What every record has, and a table of records needs least.
const OF_NO_INTEREST = new Set(['_links', 'createdAt', 'updatedAt', 'tags'])

function isEntity(item: unknown): item is Entity {
  return typeof item === 'object' && item !== null && !Array.isArray(item)
}
