// Writes what the command line is made from: dist/api.json, the operations of the API, and oclif.manifest.json, from which it
// learns its commands without loading them.
import { writeFileSync } from 'node:fs'
import { Plugin } from '@oclif/core'

const root = new URL('..', import.meta.url)

const { describeApi } = await import('../dist/server/api-description.js')
writeFileSync(new URL('dist/api.json', root), JSON.stringify(describeApi()))

const plugin = new Plugin({
  root: root.pathname,
  type: 'core',
  ignoreManifest: true,
  errorOnManifestCreate: true,
  respectNoCacheDefault: true,
})
await plugin.load()
const { commands, version } = plugin.manifest
const { topics } = await import('../dist/cli/topics.js')
// A line a command: small to read at every start, and a change shows where it is.
const lines = Object.keys(commands)
  .sort()
  .map((id) => `${JSON.stringify(id)}: ${JSON.stringify(commands[id])}`)
writeFileSync(
  new URL('oclif.manifest.json', root),
  `{"version": ${JSON.stringify(version)}, "topics": ${JSON.stringify(topics(Object.keys(commands)))}, "commands": {\n${lines.join(',\n')}\n}}\n`,
)
