// The forms in which a result is printed: stdout carries it, and nothing else.
import { type Column, tableText } from './table.ts'

export const formats = ['table', 'json', 'jsonl', 'yaml', 'name', 'jwt'] as const
export type Format = (typeof formats)[number]

type Entity = Readonly<Record<string, unknown>>

/** What a command found or made. */
export type Result =
  | { readonly kind: 'entity'; readonly entity: Entity; readonly columns: readonly Column[] }
  | {
      readonly kind: 'list'
      readonly resource: string
      readonly items: readonly Entity[]
      readonly columns: readonly Column[]
    }
  /** A sentence for people, with what a program would want to know. */
  | { readonly kind: 'done'; readonly sentence: string; readonly facts: Entity }

/** The text of a result; ends with a line end where it is not empty. */
export async function formatResult(result: Result, format: Format, isTerminal: boolean): Promise<string> {
  switch (format) {
    case 'json':
      return `${JSON.stringify(plain(result), null, 2)}\n`
    case 'jsonl':
      return items(result)
        .map((item) => `${JSON.stringify(item)}\n`)
        .join('')
    case 'yaml': {
      const { stringify } = await import('yaml')
      return stringify(plain(result))
    }
    case 'name':
      return items(result)
        .map((item) => `${String(item.name ?? item.id ?? '')}\n`)
        .join('')
    case 'jwt':
      return items(result).map(jwtOf).join('')
    case 'table':
      return table(result, isTerminal)
  }
}

function plain(result: Result): unknown {
  if (result.kind === 'list') return { apiVersion: 'v1', kind: result.resource, items: result.items }
  return result.kind === 'entity' ? result.entity : result.facts
}

function items(result: Result): readonly Entity[] {
  if (result.kind === 'list') return result.items
  return [result.kind === 'entity' ? result.entity : result.facts]
}

function jwtOf(entity: Entity): string {
  const outstanding = Object.values((entity.enrollment ?? {}) as Record<string, { jwt?: string }>)
  const jwt = (entity.jwt as string | undefined) ?? outstanding.find((enrollment) => enrollment?.jwt)?.jwt
  return jwt === undefined ? '' : `${jwt}\n`
}

async function table(result: Result, isTerminal: boolean): Promise<string> {
  if (result.kind === 'done') return `${result.sentence}\n`
  const rows = result.kind === 'list' ? result.items : [result.entity]
  return tableText(rows, result.columns, isTerminal)
}
