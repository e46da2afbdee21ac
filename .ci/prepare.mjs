// Installs and builds what is missing or stale, and does nothing otherwise: `npm start` and `npm test` begin with it.
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const root = new URL('..', import.meta.url).pathname
const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm'

function run(...args) {
  execFileSync(npm, args, { cwd: root, stdio: 'inherit', shell: process.platform === 'win32' })
}

function digest(files) {
  const hash = createHash('sha256')
  for (const file of files) hash.update(file).update(readFileSync(join(root, file)))
  return hash.digest('hex')
}

function isMarked(marker, value) {
  const path = join(root, marker)
  return existsSync(path) && readFileSync(path, 'utf8') === value
}

function sources(folder) {
  return readdirSync(join(root, folder), { recursive: true })
    .map((name) => join(folder, String(name)))
    .filter((name) => statSync(join(root, name)).isFile())
    .sort()
}

const lock = digest(['package.json', 'package-lock.json'])
if (!isMarked('node_modules/.installed', lock)) {
  run('ci', '--no-audit', '--no-fund')
  writeFileSync(join(root, 'node_modules/.installed'), lock)
}

if (process.argv[2] === 'build') {
  const built = digest([
    'package.json',
    'tsconfig.json',
    'tsconfig.build.json',
    ...['src', 'server', 'commands', 'bench', '.ci'].flatMap(sources),
  ])
  if (!isMarked('dist/.built', built)) {
    run('run', '--silent', 'build')
    writeFileSync(join(root, 'dist/.built'), built)
  }
}
