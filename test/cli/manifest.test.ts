// The start of the command line is fast: the manifest is current, and nothing heavy is loaded before it is needed.
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { BINARY, cleanEnvironment, controller, run } from '../world/binary.ts'

const root = join(import.meta.dirname, '../..')

it('the manifest, the references and the description of the API are those that the commands make', async () => {
  const { code, stderr } = await run(process.execPath, [join(root, '.ci/manifest.mjs'), '--check'], process.env)

  expect(stderr).toBe('')
  expect(code).toBe(0)
})

it('loading all commands loads neither the server nor the store', async () => {
  const script = `const { COMMANDS } = await import(${JSON.stringify(join(root, 'dist/cli/index.js'))})
    for (const command of Object.values(COMMANDS)) if (!command.summary) throw new Error('no command')`
  const traced = await run(process.execPath, ['--input-type=module', '-e', script], {
    ...process.env,
    NODE_DEBUG: 'esm',
  })
  const heavy = [
    'kysely',
    'fastify',
    'better-sqlite3',
    'argon2',
    'jose',
    'ajv',
    'inquirer',
    'cli-table3',
    'yaml',
    'pino',
  ]
  const findMatches = heavy.filter((name) => `${traced.stdout}${traced.stderr}`.includes(`node_modules/${name}/`))

  expect(traced.code).toBe(0)
  expect(traced.stderr).toContain('dist/cli/index.js')
  expect([...findMatches, ...(traced.stderr.includes('/dist/server/') ? ['the server'] : [])]).toEqual([])
})

it('help is shown without loading the commands', async () => {
  const traced = await run(process.execPath, [BINARY, 'identity', 'create', '--help'], {
    ...process.env,
    NODE_DEBUG: 'esm',
  })

  expect(traced.stdout).toMatch(/^USAGE\n {2}\$ controller identity create \[NAME\] \[flags\]$/m)
  expect(traced.stderr).not.toMatch(/dist\/cli\/(index|commands|connection)/)
})

it('the version is told by the binary alone', async () => {
  const { stdout } = await controller(['--version'], cleanEnvironment())

  expect(stdout).toMatch(/^controller\/\d+\.\d+\.\d+ node-v\d+/)
})
