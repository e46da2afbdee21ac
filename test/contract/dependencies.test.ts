// The libraries that the package depends on work on the lowest version of Node.js that it admits, and without a compiler.
import { execFileSync } from 'node:child_process'
import { cpSync, mkdtempSync, readdirSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import semver from 'semver'
import { describe, expect, it } from 'vitest'
import { readNodeApiVersion } from '../world/native-modules.ts'

const root = join(import.meta.dirname, '../..')
const readJson = (name: string) => JSON.parse(readFileSync(join(root, name), 'utf8'))

/** The lowest version of Node.js that package.json admits. */
const LOWEST_NODE = semver.minVersion(readJson('package.json').engines.node)?.version ?? ''

/** The Node-API of all of Node.js 20, by the documentation of Node-API. */
const NODE_API = 9

interface Library {
  readonly dev?: boolean
  readonly devOptional?: boolean
  /** npm installs it where it can, by its engines among others. */
  readonly optional?: boolean
  readonly engines?: { readonly node?: string }
}

/** The libraries that npm installs with the package on every version of Node.js, by path. */
const libraries = Object.entries(readJson('package-lock.json').packages as Record<string, Library>).filter(
  ([path, { dev, devOptional, optional }]) => path !== '' && !dev && !devOptional && !optional,
)

function listPrebuiltFiles(path: string): string[] {
  return readdirSync(join(root, path), { recursive: true, withFileTypes: true })
    .map(({ parentPath, name }) => join(parentPath, name))
    .filter((file) => file.endsWith('.node') && !file.includes('/build/'))
}

describe('the libraries of the package', () => {
  const { dependencies, optionalDependencies } = readJson('package.json')
  const names = Object.keys({ ...dependencies, ...optionalDependencies })

  it('are imported, each of them', () => {
    const sources = ['src', 'server', 'commands'].flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true })
        .filter((file) => String(file).endsWith('.ts'))
        .map((file) => readFileSync(join(root, folder, String(file)), 'utf8')),
    )
    const text = sources.join('\n')
    const isImported = (name: string) =>
      [`from '${name}'`, `from '${name}/`, `import('${name}'`, `import('${name}/`, `: '${name}'`].some((words) =>
        text.includes(words),
      )

    expect(names.filter((name) => !isImported(name))).toEqual([])
  })

  it('are listed with their task, and no others', () => {
    const [, table = ''] = readFileSync(join(root, 'docs/libraries.md'), 'utf8').split('| Library | Task | Where |\n')
    const [rows = ''] = table.split('\n\n')
    const cells = rows.split('\n').flatMap((row) => [...(row.split('|')[1] ?? '').matchAll(/`([^`]+)`/g)])

    expect(cells.map(([, name]) => name).sort()).toEqual([...names].sort())
  })

  it('need no later version of Node.js than the package admits', () => {
    const others = libraries.filter(([, { engines }]) => !semver.satisfies(LOWEST_NODE, engines?.node ?? '*'))

    expect(others.map(([path, { engines }]) => `${path} needs ${engines?.node}`)).toEqual([])
  })

  it('bring compiled files for no later Node-API than that version of Node.js has, on every system', () => {
    expect(LOWEST_NODE).toMatch(/^20\./)
    const files = libraries.flatMap(([path]) => listPrebuiltFiles(path))
    const versions = files.map((file) => [file.slice(root.length), readNodeApiVersion(readFileSync(file))] as const)

    expect(versions.length).toBeGreaterThan(5)
    expect(versions.filter(([, version]) => version > NODE_API)).toEqual([])
  })

  it('hash a password by a file that argon2 brings, where nothing can be compiled', () => {
    const folder = mkdtempSync(join(tmpdir(), 'prebuilt-'))
    for (const name of ['argon2', 'node-gyp-build', '@phc/format'])
      cpSync(join(root, 'node_modules', name), join(folder, 'node_modules', name), {
        recursive: true,
        filter: (path) => !path.endsWith('/argon2/build'),
      })

    const program = "require('argon2').hash('correct horse battery').then(console.log)"
    const hash = execFileSync(process.execPath, ['-e', program], { cwd: folder, env: {}, encoding: 'utf8' })

    expect(hash).toMatch(/^\$argon2id\$/)
  })
})
