// The direction in which the parts may know each other: bin → commands → server → src.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize, relative } from 'node:path'
import { describe, expect, it } from 'vitest'

const root = join(import.meta.dirname, '../..')

function filesBelow(folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true })
    .map((name) => join(folder, String(name)))
    .filter((name) => name.endsWith('.ts'))
}

/** Returns the imports of a file, types included; own files as paths from the root. */
function importsOf(file: string): string[] {
  const text = readFileSync(join(root, file), 'utf8')
  const statements = text.matchAll(
    /^(?:import|export)\s[^'"]*?\bfrom\s+'([^']+)'|^import\s+'([^']+)'|import\('([^']+)'\)/gm,
  )
  return [...statements].map(([, from, bare, dynamic]) => {
    const name = from ?? bare ?? dynamic ?? ''
    return name.startsWith('.') ? relative(root, normalize(join(root, dirname(file), name))) : name
  })
}

const rules: readonly { readonly in: string; readonly never: RegExp; readonly because: string }[] = [
  { in: 'src', never: /^(server|commands|bin)\//, because: 'the controller has no face' },
  {
    in: 'src',
    never: /^(fastify|@fastify\/|@oclif\/|inquirer|cli-table3)/,
    because: 'the controller knows no framework',
  },
  { in: 'server', never: /^(commands|bin)\//, because: 'the server knows no terminal' },
  { in: 'server', never: /^@oclif\//, because: 'the server knows no terminal' },
  { in: 'commands', never: /^fastify/, because: 'commands speak through transports' },
  {
    in: 'src/definitions/resources',
    never: /^(kysely|better-sqlite3|argon2|jose|ajv|yaml)$/,
    because: 'commands load the definitions, and must start fast',
  },
  { in: 'src/policy', never: /^(?!src\/|lru-cache$)/, because: 'policy evaluation does no I/O' },
  { in: 'src/pki', never: /^(kysely|better-sqlite3)$/, because: 'certificates do not depend on storage' },
]

// ---- the tables of parts -------------------------------------------------------------------------------------------

/** The folders that are divided into parts by the table of their README. */
const DIVIDED = ['src', 'server', 'commands'] as const

interface Row {
  /** Folders, with a slash at their end, and files: below the divided folder. */
  readonly parts: readonly string[]
  /** The parts that they may import besides themselves. */
  readonly imports: readonly string[]
}

function readTable(folder: string): Row[] {
  const readme = readFileSync(join(root, folder, 'README.md'), 'utf8')
  const [, table = ''] = /^\| Part \| Purpose \| Imports \|\n\|[-|]+\n((?:\|.*\n)+)/m.exec(readme) ?? []
  return table
    .trimEnd()
    .split('\n')
    .map((line) => {
      const [, parts = '', , imports = ''] = line.split('|').map((cell) => cell.trim())
      return { parts: namesIn(parts), imports: namesIn(imports) }
    })
}

function namesIn(cell: string): string[] {
  return [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name)
}

/** The table of a divided folder. */
class Parts {
  readonly rows: readonly Row[]
  readonly #folder: string

  constructor(folder: string) {
    this.#folder = folder
    this.rows = readTable(folder)
  }

  /** The place in the table of a file: of the part with the longest name that contains it. */
  rowOf(file: string): number {
    const name = file.slice(this.#folder.length + 1)
    const [best] = this.rows
      .flatMap(({ parts }, at) => parts.map((part) => ({ part, at })))
      .filter(({ part }) => (part.endsWith('/') ? name.startsWith(part) : name === part))
      .sort((a, b) => b.part.length - a.part.length)
    return best?.at ?? -1
  }

  mayImport(from: number, to: number): boolean {
    if (from === to) return true
    const { imports } = this.rows[from] as Row
    return to < from && imports.some((part) => this.rowOf(`${this.#folder}/${part}`) === to)
  }
}

// ---- circles -------------------------------------------------------------------------------------------------------

type Graph = ReadonlyMap<string, readonly string[]>

/** Groups of files that reach each other (the strongly connected components of more than one file, by Tarjan). */
function findCircles(graph: Graph): string[][] {
  const circles: string[][] = []
  const order = new Map<string, number>()
  const lowest = new Map<string, number>()
  const stack: string[] = []
  const visit = (file: string) => {
    order.set(file, order.size)
    lowest.set(file, order.get(file) as number)
    stack.push(file)
    for (const next of graph.get(file) ?? []) {
      if (!graph.has(next)) continue
      if (!order.has(next)) visit(next)
      if (stack.includes(next)) lowest.set(file, Math.min(lowest.get(file) as number, lowest.get(next) as number))
    }
    if (lowest.get(file) !== order.get(file)) return
    const circle = stack.splice(stack.indexOf(file))
    if (circle.length > 1) circles.push(circle.sort())
  }
  for (const file of graph.keys()) if (!order.has(file)) visit(file)
  return circles
}

describe.each(DIVIDED)('the parts of %s', (folder) => {
  const parts = new Parts(folder)

  it('have a row each in its table, which names none twice', () => {
    const names = parts.rows.flatMap((row) => row.parts)

    expect(filesBelow(folder).filter((file) => parts.rowOf(file) === -1)).toEqual([])
    expect(names.filter((part) => !existsSync(join(root, folder, part)))).toEqual([])
    expect(names.filter((part, at) => names.indexOf(part) !== at)).toEqual([])
  })

  it('name as imports only parts above', () => {
    const below = parts.rows.flatMap((row, at) =>
      row.imports
        .filter((part) => !(parts.rowOf(`${folder}/${part}`) < at))
        .map((part) => `${row.parts.join(', ')}: ${part}`),
    )

    expect(below).toEqual([])
  })

  it('import what their rows name, types too', () => {
    const offences = filesBelow(folder).flatMap((file) =>
      importsOf(file)
        .filter((name) => name.startsWith(`${folder}/`) && !parts.mayImport(parts.rowOf(file), parts.rowOf(name)))
        .map((name) => `${file} → ${name}`),
    )

    expect(offences).toEqual([])
  })

  it('name no import that none of their files has', () => {
    const needed = new Set(
      filesBelow(folder).flatMap((file) => importsOf(file).map((name) => `${parts.rowOf(file)} ${parts.rowOf(name)}`)),
    )
    const unneeded = parts.rows.flatMap((row, at) =>
      row.imports
        .filter((part) => !needed.has(`${at} ${parts.rowOf(`${folder}/${part}`)}`))
        .map((part) => `${row.parts.join(', ')}: ${part}`),
    )

    expect(unneeded).toEqual([])
  })

  it('are at most thirteen folders, and at most four files beside them', () => {
    const entries = readdirSync(join(root, folder), { withFileTypes: true }).filter(({ name }) => name !== 'README.md')

    expect(entries.filter((entry) => entry.isDirectory()).length).toBeLessThanOrEqual(13)
    expect(entries.filter((entry) => entry.isFile()).length).toBeLessThanOrEqual(4)
  })
})

describe('the layers', () => {
  it.each(rules.map((rule) => [`${rule.in} never imports ${rule.never}: ${rule.because}`, rule]))(
    '%s',
    (_name, rule) => {
      const offences = filesBelow(rule.in).flatMap((file) =>
        importsOf(file)
          .filter((name) => rule.never.test(name))
          .map((name) => `${file} imports ${name}`),
      )

      expect(offences).toEqual([])
    },
  )

  it('have no circle of imports, of types too', () => {
    const files = ['src', 'server', 'commands', 'bench'].flatMap(filesBelow)
    const graph = new Map(files.map((file) => [file, importsOf(file)]))

    expect(findCircles(graph)).toEqual([])
  })

  it('knows SQLite in its dialect only', () => {
    const users = filesBelow('src').filter((file) => importsOf(file).includes('better-sqlite3'))

    expect(users.every((file) => file.startsWith('src/storage/sqlite/'))).toBe(true)
  })

  it('sends requests to others from one part of the controller only', () => {
    const sends =
      /import \{[^}]*\b(?:request|get|connect|createConnection)\b[^}]*\} from 'node:(?:https?|net|tls)'|(?<![#.\w])fetch\(/
    const senders = ['src', 'server']
      .flatMap(filesBelow)
      // The command line's own requests to a controller.
      .filter((file) => file !== 'src/client/http-transport.ts')
      // A handshake between two ends in memory.
      .filter((file) => file !== 'src/adopt/served-chain.ts')
      .filter((file) => sends.test(readFileSync(join(root, file), 'utf8')))

    expect(senders).toEqual(['src/client/outbound-client.ts'])
  })

  it('opens every file with a sentence on what it is for', () => {
    const silent = ['src', 'server', 'commands', 'bench', 'test']
      .flatMap(filesBelow)
      .filter((file) => !readFileSync(join(root, file), 'utf8').startsWith('// '))

    expect(silent).toEqual([])
  })

  it('asks for the time in one file only', () => {
    const askers = ['src', 'server']
      .flatMap(filesBelow)
      .filter((file) => /\bnew Date\(\)|\bDate\.now\(\)/.test(readFileSync(join(root, file), 'utf8')))

    expect(askers).toEqual(['src/foundation/clock.ts'])
  })
})
