// Says in one line why npm could not install a library with native code.
import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'

/** What compiling a library needs: programs of which one must be there. */
const TOOLS = {
  'Python 3': ['python3', 'python'],
  make: ['make', 'gmake'],
  'a C++ compiler': ['c++', 'g++', 'clang++'],
}

const isOnPath = (program, path) => path.split(delimiter).some((folder) => existsSync(join(folder, program)))

/** The names of the tools for compiling that the folders of `path` lack. */
function listMissingTools(path) {
  return Object.keys(TOOLS).filter((tool) => !TOOLS[tool].some((program) => isOnPath(program, path)))
}

const listTools = (tools) => new Intl.ListFormat('en').format(tools)

/** The library with native code that npm could not install, from what it wrote to stderr; undefined if it names none. */
export function findFailedLibrary(output) {
  const errorLine = output
    .split('\n')
    .find((line) => line.startsWith('npm error path ') && line.includes('node_modules'))
  return errorLine?.split('node_modules').at(-1)?.slice(1)
}

/**
 * @param library has native code, and could not be installed
 * @param path where programs are looked for
 * @returns one line
 */
export function describeInstallFailure(library, path) {
  const missingTools = process.platform === 'win32' ? [] : listMissingTools(path)
  const lack = missingTools.length > 0 ? `, of which this machine lacks ${listTools(missingTools)}` : ''
  const alternative =
    library === 'better-sqlite3-12'
      ? ' Node.js 22.14 or later does without, because better-sqlite3 13 brings its file.'
      : ''
  return `${library} could not be installed: there is no compiled file for this system, or it could not be downloaded; compiling it needs ${listTools(Object.keys(TOOLS))}${lack}.${alternative}`
}
