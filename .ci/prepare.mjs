// Installs and builds what is missing or stale, and does nothing otherwise: `npm start` and `npm test` begin with it.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { isBuilt, isInstalled, SQLITE_LIBRARY } from './built.mjs'
import { describeInstallFailure, findFailedLibrary } from './install-failure.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm'

function refuse(library) {
  process.stderr.write(`\n${describeInstallFailure(library, process.env.PATH ?? '')}\n`)
}

/** Runs npm, and exits as it does if it fails, after the name of the library for which that was. */
async function run(args) {
  const stdio = ['inherit', 'inherit', 'pipe']
  const child = spawn(npm, args, { cwd: root, stdio, shell: process.platform === 'win32' })
  let output = ''
  child.stderr.on('data', (chunk) => {
    output += chunk
    process.stderr.write(chunk)
  })
  const [code] = await once(child, 'close')
  if (code === 0) return
  const library = findFailedLibrary(output)
  if (library) refuse(library)
  process.exit(code ?? 1)
}

if (!isInstalled()) {
  process.stderr.write('Installing the libraries: this takes a minute or more.\n')
  await run(['ci', '--no-audit', '--no-fund'])
  // npm leaves out an optional library that it could not compile.
  if (!isInstalled()) {
    refuse(SQLITE_LIBRARY)
    process.exit(1)
  }
}

if (process.argv[2] === 'build' && !isBuilt()) {
  process.stderr.write('Building.\n')
  await run(['run', '--silent', 'build'])
}
