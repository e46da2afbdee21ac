// Installs and builds what is missing or stale, and does nothing otherwise: `npm start` and `npm test` begin with it.
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { digest, isBuilt, isMarked } from './built.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm'

function run(...args) {
  execFileSync(npm, args, { cwd: root, stdio: 'inherit', shell: process.platform === 'win32' })
}

const lock = digest(['package.json', 'package-lock.json'])
if (!isMarked('node_modules/.installed', lock)) {
  process.stderr.write('Installing the libraries: this takes a minute or more.\n')
  run('ci', '--no-audit', '--no-fund')
  writeFileSync(`${root}node_modules/.installed`, lock)
}

if (process.argv[2] === 'build' && !isBuilt()) {
  process.stderr.write('Building.\n')
  run('run', '--silent', 'build')
}
