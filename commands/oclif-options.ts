// How oclif finds the commands, the hooks and the help of this program.
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { type Interfaces, Plugin, settings } from '@oclif/core'

const root = fileURLToPath(new URL('../..', import.meta.url))

let program: Promise<Plugin> | undefined

/** The options of oclif; the list of all commands is read once. */
export async function loadOptions(): Promise<Interfaces.LoadOptions & object> {
  // The built files are run, whatever NODE_ENV says.
  settings.enableAutoTranspile = false
  program ??= loadProgram()
  return { root, plugins: new Map([['program', copyProgram(await program)]]), devPlugins: false, userPlugins: false }
}

/** A copy for one command line, because the help of oclif changes the ids of the commands that it shows. */
function copyProgram(plugin: Plugin): Plugin {
  const commands = plugin.commands.map((command) => ({ ...command }))
  return Object.assign(Object.create(plugin) as Plugin, { commands })
}

/** Reads package.json, the topics that the build lists, and the manifest. */
async function loadProgram(): Promise<Plugin> {
  const pjson = readJson('../../package.json') as Interfaces.PJSON
  const topics = readJson('../topics.json') as Interfaces.PJSON['oclif']['topics']
  const plugin = new Plugin({ isRoot: true, root, pjson: { ...pjson, oclif: { ...pjson.oclif, topics } } })
  await plugin.load()
  return plugin
}

function readJson(path: string): unknown {
  return JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8'))
}
