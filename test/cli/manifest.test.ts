// What makes the command line fast: the manifest is current, and nothing heavy is loaded before it is needed.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { cleanEnvironment, controller, run } from '../world/binary.ts'

const root = join(import.meta.dirname, '../..')

it('the manifest is the one that the commands make', async () => {
  const before = readFileSync(join(root, 'oclif.manifest.json'), 'utf8')
  const { code } = await run(process.execPath, [join(root, '.ci/manifest.mjs')], process.env)

  expect(code).toBe(0)
  expect(readFileSync(join(root, 'oclif.manifest.json'), 'utf8')).toBe(before)
})

it('loading the commands loads neither the server nor the store', async () => {
  const script = `await import(${JSON.stringify(join(root, 'dist/commands/index.js'))})
    const loaded = process.getBuiltinModule?.('module') ?? (await import('node:module')).default
    console.log(Object.keys(loaded._cache ?? {}).join('\\n'))`
  const traced = await run(process.execPath, ['--input-type=module', '-e', script], {
    ...process.env,
    NODE_DEBUG: 'esm',
  })
  const heavy = ['kysely', 'fastify', 'better-sqlite3', 'argon2', 'jose', 'ajv', 'inquirer', 'cli-table3', 'yaml']
  const found = heavy.filter((name) => `${traced.stdout}${traced.stderr}`.includes(`node_modules/${name}/`))

  expect(traced.code).toBe(0)
  expect(found).toEqual([])
})

it('every command has an example', () => {
  const { commands } = JSON.parse(readFileSync(join(root, 'oclif.manifest.json'), 'utf8'))
  const without = Object.values<{ id: string; examples?: string[] }>(commands).filter(
    ({ examples }) => !examples?.length,
  )

  expect(without.map(({ id }) => id)).toEqual([])
})

it('the version is told by the binary alone', async () => {
  const { stdout } = await controller(['--version'], cleanEnvironment())

  expect(stdout).toMatch(/^controller\/\d+\.\d+\.\d+ node-v\d+/)
})
