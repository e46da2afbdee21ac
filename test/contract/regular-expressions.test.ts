// Every regular expression of the tree takes time in proportion to the text it is given, however that text is chosen.
//
// A verdict depends on the expression and the checker only, and some take seconds: a run checks those that are new since the last one.
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { check } from 'recheck'
import recheck from 'recheck/package.json' with { type: 'json' }
import { parseAst } from 'rolldown/parseAst'
import { afterAll, describe, expect, it } from 'vitest'

// The steps of the search end by what they have done, not by the time that a busy machine gave them: an earlier end guesses.
const LIMITS = { timeout: 600_000, seedingTimeout: null, incubationTimeout: null, attackTimeout: null }

const root = fileURLToPath(new URL('../..', import.meta.url))

interface Found {
  readonly file: string
  readonly line: number
  readonly source: string
  readonly flags: string
}

/** The parts of a syntax tree's node that this test reads. */
interface SyntaxNode {
  readonly type: string
  readonly start: number
  readonly value?: unknown
  readonly regex?: { readonly pattern: string; readonly flags: string }
  readonly callee?: { readonly name?: string }
  readonly arguments?: readonly SyntaxNode[]
  readonly key?: { readonly name?: string }
  readonly id?: { readonly name?: string }
  readonly name?: string
  readonly init?: SyntaxNode | null
  readonly quasis?: readonly { readonly value: { readonly cooked: string } }[]
  readonly expressions?: readonly SyntaxNode[]
}

const expressions: Found[] = []
const computed: string[] = []

for (const folder of ['src', 'server', 'commands', 'bin', '.ci']) {
  for (const name of readdirSync(join(root, folder), { recursive: true }) as string[]) {
    if (!/\.(?:ts|m?js)$/.test(name)) continue
    const file = join(folder, name)
    collect(file, readFileSync(join(root, file), 'utf8'))
  }
}

function collect(file: string, text: string): void {
  const constants = new Map<string, string>()
  const line = ({ start }: SyntaxNode) => text.slice(0, start).split('\n').length
  for (const node of nodesOf(parseAst(text, { lang: 'ts' }) as unknown)) {
    const { type, regex, id, init, callee, key, value, arguments: given = [] } = node
    const add = (source: string, flags: string) => expressions.push({ file, line: line(node), source, flags })
    if (type === 'VariableDeclarator' && id?.name && init) {
      const constant = textOf(init, constants)
      if (constant !== undefined) constants.set(id.name, constant)
    }
    if (type === 'Literal' && regex) add(regex.pattern, regex.flags)
    if (/^(?:New|Call)Expression$/.test(type) && callee?.name === 'RegExp') {
      const [source, flags = ''] = given.map((argument) => textOf(argument, constants))
      if (source === undefined) computed.push(`${file}:${line(node)}`)
      else add(source, flags)
    }
    // JSON Schema's word for a regular expression.
    const pattern = type === 'Property' && key?.name === 'pattern' ? textOf(value as SyntaxNode, constants) : undefined
    if (pattern !== undefined) add(pattern, 'u')
  }
}

function* nodesOf(tree: unknown): Generator<SyntaxNode> {
  if (typeof tree !== 'object' || tree === null) return
  if ('type' in tree && typeof tree.type === 'string') yield tree as SyntaxNode
  for (const child of Object.values(tree)) yield* nodesOf(child)
}

/** The text that an expression always has: a literal, or one put together from literals. */
function textOf(
  { type, value, name = '', quasis = [], expressions = [] }: SyntaxNode,
  constants: ReadonlyMap<string, string>,
): string | undefined {
  if (type === 'Literal') return typeof value === 'string' || typeof value === 'number' ? String(value) : undefined
  if (type === 'Identifier') return constants.get(name)
  if (type !== 'TemplateLiteral') return undefined
  const parts = expressions.map((expression) => textOf(expression, constants))
  if (parts.includes(undefined)) return undefined
  return quasis.map(({ value: { cooked } }, at) => cooked + (parts[at] ?? '')).join('')
}

describe('regular expressions', () => {
  it('are found', () => {
    expect(expressions.length).toBeGreaterThan(50)
  })

  it('are all known before the program runs', () => {
    expect(computed).toEqual([])
  })
})

const VERDICTS = join(root, 'node_modules/.cache/linear-expressions.json')
const linear = new Set<string>(existsSync(VERDICTS) ? (JSON.parse(readFileSync(VERDICTS, 'utf8')) as string[]) : [])
const toKey = ({ source, flags }: Found) => JSON.stringify([recheck.version, LIMITS, source, flags])

afterAll(() => {
  mkdirSync(dirname(VERDICTS), { recursive: true })
  writeFileSync(VERDICTS, JSON.stringify(expressions.map(toKey).filter((key) => linear.has(key))))
})

describe.each(expressions)('$file:$line /$source/$flags', (expression) => {
  it('is linear', { timeout: 660_000 }, async () => {
    const { source, flags } = expression
    if (linear.has(toKey(expression))) return
    const { status, ...diagnostics } = await check(source, flags, LIMITS)

    expect({ status, attack: 'attack' in diagnostics ? diagnostics.attack : undefined }).toEqual({
      status: 'safe',
      attack: undefined,
    })
    linear.add(toKey(expression))
  })
})
