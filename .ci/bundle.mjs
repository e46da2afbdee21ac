// Puts the command line into few files, because loading many small ones is most of the time a short command takes.
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'
import { rolldown } from 'rolldown'

const root = fileURLToPath(new URL('..', import.meta.url))

/** Libraries of many commands, whose files cost more time to find than to run. */
const BUNDLED = /^(@oclif\/|ulid$|ipaddr\.js$|cli-table3$)/

/** What is only loaded by some commands stays as it is: the server, the store, and most libraries. */
function isLoadedLater(id) {
  if (/^\.\.?\//.test(id))
    return /^(\.\.\/)+(server\/|src\/(initialize|recover|rotate-keys|controller|storage\/|maintenance\/))/.test(id)
  return !id.startsWith('/') && !id.startsWith('\0') && !BUNDLED.test(id)
}

/** What is loaded by its name: by the binary, by oclif as package.json says, and by the build. */
const ENTRIES = ['main', 'index', 'hooks', 'help/help', 'help/generated']

const bundle = await rolldown({
  input: Object.fromEntries(ENTRIES.map((path) => [basename(path), `${root}dist/commands/${path}.js`])),
  platform: 'node',
  external: (id, importer) => isLoadedLater(id) && !(importer ?? '').includes('node_modules'),
  logLevel: 'warn',
})
const { output } = await bundle.write({ dir: `${root}dist/cli`, format: 'esm', minify: true, cleanDir: true })
await bundle.close()

const strays = output.flatMap(({ moduleIds = [] }) =>
  moduleIds.filter((id) => /\/dist\/(server|src\/(?:storage|maintenance))\//.test(id)),
)
if (strays.length > 0)
  throw new Error(`isLoadedLater must name what brings these into every start: ${strays.join(', ')}`)
