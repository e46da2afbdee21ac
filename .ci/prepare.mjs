// Installs and builds what is missing or stale, and does nothing otherwise: `npm start` and `npm test` begin with it.
import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { isBuilt, isInstalled } from './built.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm'

function run(...args) {
  execFileSync(npm, args, { cwd: root, stdio: 'inherit', shell: process.platform === 'win32' })
}

if (!isInstalled()) {
  process.stderr.write('Installing the libraries: this takes a minute or more.\n')
  run('ci', '--no-audit', '--no-fund')
}

if (process.argv[2] === 'build' && !isBuilt()) {
  process.stderr.write('Building.\n')
  run('run', '--silent', 'build')
}
