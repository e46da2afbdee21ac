// The start of the command line is fast: the manifest is current, and nothing heavy is loaded before it is needed.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { SQLITE_LIBRARY } from '../../src/settings/native-libraries.ts'
import { BINARY, cleanEnvironment, controller, run } from '../world/binary.ts'

const root = join(import.meta.dirname, '../..')

it('the manifest, the references and the description of the API are those that the commands make', async () => {
  const { code, stderr } = await run(process.execPath, [join(root, '.ci/manifest.mjs'), '--check'], process.env)

  expect(stderr).toBe('')
  expect(code).toBe(0)
})

/** The sources of what a program loads: the build names them in the files that it makes. */
async function findLoadedSources(script: string): Promise<Set<string>> {
  const { code, stderr } = await run(process.execPath, ['--input-type=module', '-e', script], {
    ...process.env,
    NODE_DEBUG: 'esm',
  })
  expect(code).toBe(0)
  const files = new Set([...stderr.matchAll(/dist\/cli\/[\w-]+\.js/g)].map(([file]) => file))
  const texts = [...files].map((file) => readFileSync(join(root, file), 'utf8'))
  const names = texts.flatMap((text) => [...text.matchAll(/^\/\/ (\S+\.[cm]?[jt]s)$/gm)].map(([, name = '']) => name))
  return new Set([...names, ...[...stderr.matchAll(/node_modules\/[\w./@-]+/g)].map(([name]) => name)])
}

it('loading all commands loads neither the server nor the store', async () => {
  const sources =
    await findLoadedSources(`const { COMMANDS } = await import(${JSON.stringify(join(root, 'dist/cli/index.js'))})
    for (const command of Object.values(COMMANDS)) if (!command.summary) throw new Error('no command')`)
  const heavy = ['kysely', 'fastify', SQLITE_LIBRARY, 'argon2', 'jose', 'ajv', 'inquirer', 'cli-table3', 'yaml', 'pino']
  const isHeavy = (source: string) =>
    /^(server|src\/storage)\//.test(source) || heavy.some((name) => source.startsWith(`node_modules/${name}/`))

  expect([...sources]).toContain('commands/index.ts')
  expect([...sources].filter(isHeavy)).toEqual([])
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
