// How oclif finds the commands, the hooks and the help of this program.
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { type Interfaces, settings } from '@oclif/core'

/** Package.json, with the topics that the build lists. */
export function loadOptions(): Interfaces.LoadOptions & object {
  // The built files are run, whatever NODE_ENV says.
  settings.enableAutoTranspile = false
  const pjson = readJson('../../package.json') as Interfaces.PJSON
  const topics = readJson('../topics.json') as Interfaces.PJSON['oclif']['topics']
  return {
    root: fileURLToPath(new URL('../..', import.meta.url)),
    pjson: { ...pjson, oclif: { ...pjson.oclif, topics } },
    devPlugins: false,
    userPlugins: false,
  }
}

function readJson(path: string): unknown {
  return JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8'))
}
