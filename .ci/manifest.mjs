// Writes what follows from the operations and the commands: dist/api.json, from which commands are made; oclif.manifest.json, by
// which they are found without loading them, and dist/topics.json, their topics; docs/cli/, the reference. With --check it only says
// whether they are current.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { Plugin } from '@oclif/core'
import { divideReference, removeOtherPages } from './cli-pages.mjs'

const root = new URL('..', import.meta.url)
const isCheck = process.argv.includes('--check')

function write(name, text) {
  const file = new URL(name, root)
  if (!isCheck) {
    mkdirSync(new URL('.', file), { recursive: true })
    writeFileSync(file, text)
  } else if (readFileSync(file, 'utf8') !== text) {
    process.stderr.write(`${name} is not current: npm run build\n`)
    process.exitCode = 1
  }
}

const { describeApi } = await import('../dist/cli/api-description.js')
write('dist/api.json', JSON.stringify(describeApi()))

const plugin = new Plugin({
  root: root.pathname,
  type: 'core',
  ignoreManifest: true,
  errorOnManifestCreate: true,
  respectNoCacheDefault: true,
})
await plugin.load()
const { listTopics, renderCommandReference } = await import('../dist/cli/generated.js')
const { version } = plugin.manifest
const commands = Object.fromEntries(Object.entries(plugin.manifest.commands).sort(([a], [b]) => (a < b ? -1 : 1)))
write('dist/topics.json', JSON.stringify(listTopics(commands)))
// A line a command: quick to read at every start, and a change shows where it is.
const lines = Object.entries(commands).map(([id, command]) => `${JSON.stringify(id)}: ${JSON.stringify(command)}`)
write('oclif.manifest.json', `{"version": "${version}",\n"commands": {\n${lines.join(',\n')}\n}}\n`)
const pages = divideReference(await renderCommandReference())
if (!isCheck) removeOtherPages(new URL('docs/cli/', root), pages)
for (const [name, text] of pages) write(`docs/cli/${name}`, text)
const { renderConfigReference } = await import('../dist/cli/config-reference.js')
write('docs/configuration.md', renderConfigReference())
