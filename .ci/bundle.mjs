// Builds dist/ from the sources: puts them, and libraries of many small files, into few files, because to find and load a thousand
// files is most of the time that a start takes.
import { rmSync } from 'node:fs'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'
import { rolldown } from 'rolldown'

const root = fileURLToPath(new URL('..', import.meta.url))

/** The files that are loaded by their names: by the binary, by oclif as package.json says, as a thread, and by the build. */
const PROGRAM = [
  'commands/main.ts',
  'commands/index.ts',
  'commands/hooks.ts',
  'commands/help/help.ts',
  'commands/help/generated.ts',
  'server/operations/api-description.ts',
  'src/foundation/version.ts',
  'src/settings/config-reference.ts',
  'src/storage/sqlite/scan-thread.ts',
  'src/maintenance/integrity/check-thread.ts',
  'src/maintenance/backup/backup-thread.ts',
  'src/storage/cluster/digest-thread.ts',
  'src/storage/cluster/snapshot-thread.ts',
]

/** The bench, and what it starts as threads and processes. */
const BENCH = [
  'bench/main.ts',
  'bench/generator/worker.ts',
  'bench/routers/swarm-process.ts',
  'bench/controller/floor-server.ts',
  'bench/controller/inside.ts',
]

/** Libraries with native code, and one with octal literals, which modules must not have. */
const LOADED_FROM_THEIR_FOLDERS = ['argon2', 'qrcode-terminal']

async function build(folder, entries) {
  const bundle = await rolldown({
    input: Object.fromEntries(entries.map((path) => [basename(path, '.ts'), `${root}${path}`])),
    platform: 'node',
    external: LOADED_FROM_THEIR_FOLDERS,
    logLevel: 'warn',
  })
  const { output } = await bundle.write({ dir: `${root}dist/${folder}`, format: 'esm', comments: { jsdoc: false } })
  await bundle.close()
  return output
}

/** The modules of the chunks that a chunk loads at once. */
function listLoadedModules(output, name) {
  const chunks = new Map(output.map((chunk) => [chunk.fileName, chunk]))
  const loaded = new Set([`${name}.js`])
  for (const fileName of loaded) for (const next of chunks.get(fileName)?.imports ?? []) loaded.add(next)
  return [...loaded].flatMap((fileName) => chunks.get(fileName)?.moduleIds ?? [])
}

rmSync(`${root}dist`, { recursive: true, force: true })
const output = await build('cli', PROGRAM)
await build('bench', BENCH)

const strays = ['main', 'index', 'hooks', 'help']
  .flatMap((name) => listLoadedModules(output, name))
  .filter((id) => id.startsWith(`${root}server/`) || /\/src\/(storage|maintenance)\//.test(id))
if (strays.length > 0) throw new Error(`every command loads at its start: ${strays.join(', ')}`)
