// The direction in which the parts may know each other: bin → commands → server → src.
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize, relative } from 'node:path'
import { describe, expect, it } from 'vitest'

const root = join(import.meta.dirname, '../..')

function filesBelow(folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true })
    .map((name) => join(folder, String(name)))
    .filter((name) => name.endsWith('.ts'))
}

/** What a file imports to use it, not only for its types; own files as paths from the root. */
function importsOf(file: string): string[] {
  const text = readFileSync(join(root, file), 'utf8')
  const statements = text.matchAll(
    /^(?:import|export)\s+(?!type\b)[^'"]*?from\s+'([^']+)'|^import\s+'([^']+)'|import\('([^']+)'\)/gm,
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
  { in: 'src/schema', never: /^src\/(?!schema|errors|clock|ids)/, because: 'field kinds stand below everything' },
  {
    in: 'src/resources',
    never: /^src\/(?!resources|schema|errors|clock|ids)/,
    because: 'definitions stand below what follows from them',
  },
  {
    in: 'src/resources',
    never: /^(kysely|better-sqlite3|argon2|jose|ajv|yaml)$/,
    because: 'commands load the definitions, and must start fast',
  },
  {
    in: 'src/model',
    never: /^src\/(?!model|resources|schema|errors)|^(kysely|better-sqlite3|fastify)/,
    because: 'what is compiled from definitions follows from them alone',
  },
  { in: 'src/policy', never: /^(?!src\/policy)/, because: 'policy evaluation does no I/O' },
  { in: 'src/pki', never: /^(kysely|better-sqlite3)$|^src\/store/, because: 'certificates do not depend on storage' },
]

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

  it('knows SQLite in its dialect only', () => {
    const users = filesBelow('src').filter((file) => importsOf(file).includes('better-sqlite3'))

    expect(users.every((file) => file.startsWith('src/store/dialects/sqlite/'))).toBe(true)
  })

  it('opens every file with a sentence on what it is for', () => {
    const silent = ['src', 'server', 'commands', 'test']
      .flatMap(filesBelow)
      .filter((file) => !readFileSync(join(root, file), 'utf8').startsWith('// '))

    expect(silent).toEqual([])
  })

  it('asks for the time in one file only', () => {
    const askers = ['src', 'server']
      .flatMap(filesBelow)
      .filter((file) => /\bnew Date\(\)|\bDate\.now\(\)/.test(readFileSync(join(root, file), 'utf8')))

    expect(askers).toEqual(['src/clock.ts'])
  })
})
