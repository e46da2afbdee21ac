// Says in one line why npm could not install the libraries, from what npm wrote.
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

/**
 * @param output what npm wrote to stderr
 * @param path where programs are looked for
 * @returns one line
 */
export function describeInstallFailure(output, path) {
  const errorLine = output
    .split('\n')
    .find((line) => line.startsWith('npm error path ') && line.includes('node_modules'))
  const library = errorLine?.split('node_modules').at(-1)?.slice(1)
  if (library === undefined) return 'The libraries could not be installed: npm says above why.'
  const reason = output.split('prebuild-install warn install ')[1]?.split('\n')[0]
  const download = reason
    ? `its compiled file for this system could not be downloaded (${reason})`
    : 'it has no compiled file for this system'
  const missingTools = process.platform === 'win32' ? [] : listMissingTools(path)
  const lack =
    missingTools.length > 0 ? `; missing here: ${missingTools.join(', ')}` : '; npm says above why that failed'
  return `${library} could not be installed: ${download}, and compiling it needs ${Object.keys(TOOLS).join(', ')}${lack}.`
}
