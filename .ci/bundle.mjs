// Puts the command line into few files, because loading many small ones is most of the time a short command takes.
import { fileURLToPath } from 'node:url'
import { rolldown } from 'rolldown'

const root = fileURLToPath(new URL('..', import.meta.url))

/** What is only loaded by some commands stays as it is: the server, the store, and every library but oclif. */
function isLoadedLater(id) {
  if (/^\.\.?\//.test(id))
    return /^\.\.\/(server\/|src\/(initialize|recover|rotate-keys|controller|storage\/|operations\/))/.test(id)
  return !id.startsWith('/') && !id.startsWith('\0') && !id.startsWith('@oclif/')
}

/** What oclif loads to find plugins and to fill in templates: never called here, so nothing takes its place. */
const NEVER_CALLED = ['ejs', 'lilconfig', 'minimatch', 'tinyglobby']
const nothing = {
  name: 'nothing',
  resolveId: (id) => (NEVER_CALLED.includes(id) ? '\0nothing' : undefined),
  load: (id) => (id === '\0nothing' ? 'export default {}' : undefined),
}

const bundle = await rolldown({
  input: Object.fromEntries(['main', 'index', 'generated'].map((name) => [name, `${root}dist/commands/${name}.js`])),
  platform: 'node',
  resolve: { alias: { '@oclif/core$': `${root}.ci/oclif.mjs` } },
  plugins: [nothing],
  external: (id, importer) => isLoadedLater(id) && !(importer ?? '').includes('node_modules'),
  logLevel: 'warn',
})
const { output } = await bundle.write({ dir: `${root}dist/cli`, format: 'esm', minify: true, cleanDir: true })
await bundle.close()

const strays = output.flatMap(({ moduleIds = [] }) =>
  moduleIds.filter((id) => /\/dist\/(server|src\/(?:storage|operations))\//.test(id)),
)
if (strays.length > 0)
  throw new Error(`isLoadedLater must name what brings these into every start: ${strays.join(', ')}`)
