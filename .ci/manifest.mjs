// Writes oclif.manifest.json, from which the command line learns its commands without loading them.
import { writeFileSync } from 'node:fs'
import { Plugin } from '@oclif/core'

const root = new URL('..', import.meta.url).pathname
const plugin = new Plugin({
  root,
  type: 'core',
  ignoreManifest: true,
  errorOnManifestCreate: true,
  respectNoCacheDefault: true,
})
await plugin.load()
const { commands, version } = plugin.manifest
const sorted = Object.fromEntries(Object.entries(commands).sort(([a], [b]) => (a < b ? -1 : 1)))
writeFileSync(
  new URL('../oclif.manifest.json', import.meta.url),
  `${JSON.stringify({ commands: sorted, version }, null, 2)}\n`,
)
