// Knows whether the libraries are those of the lock file, and whether dist/ is what the sources would build now: run as a program,
// it marks dist/ as just built.
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const MARKER = 'dist/.built'

/** The digest of the names and contents of files. */
function digest(files) {
  const hash = createHash('sha256')
  for (const file of files) hash.update(file).update(readFileSync(join(root, file)))
  return hash.digest('hex')
}

/** The one of two optional libraries that this version of Node.js needs, as `src/settings/native-libraries.ts` says. */
export const SQLITE_LIBRARY = Number(process.versions.napi) >= 10 ? 'better-sqlite3' : 'better-sqlite3-12'

/**
 * Whether the libraries of package-lock.json are installed, whichever command of npm did it: npm lists in node_modules what it has
 * installed. Optional libraries may be missing, because many are for other systems, and npm leaves out what it could not compile.
 */
export function isInstalled(folder = root) {
  const wantedPackages = readPackages(join(folder, 'package-lock.json'))
  const packages = readPackages(join(folder, 'node_modules/.package-lock.json'))
  if (!wantedPackages || !packages) return false
  return Object.entries(wantedPackages).every(
    ([path, entry]) =>
      path === '' || (path in packages ? isSamePackage(packages[path], entry) : isOptional(path, entry)),
  )
}

function isOptional(path, entry) {
  return entry.optional === true && path !== `node_modules/${SQLITE_LIBRARY}`
}

/** Versions of npm differ in what else they note about a package. */
function isSamePackage(installed, wanted) {
  return installed.version === wanted.version && installed.integrity === wanted.integrity
}

function readPackages(file) {
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')).packages : undefined
}

function listSources(folder) {
  return readdirSync(join(root, folder), { recursive: true })
    .map((name) => join(folder, String(name)))
    .filter((name) => statSync(join(root, name)).isFile())
    .sort()
}

function digestSources() {
  return digest([
    'package.json',
    'tsconfig.json',
    // Parts of the bench.
    'test/world/free-port.ts',
    'test/world/postgres.ts',
    'test/world/tcp-proxy.ts',
    ...['src', 'server', 'commands', 'bench', '.ci'].flatMap(listSources),
  ])
}

/** Whether dist/ was built from the sources as they are. */
export function isBuilt() {
  const path = join(root, MARKER)
  return existsSync(path) && readFileSync(path, 'utf8') === digestSources()
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(join(root, MARKER), digestSources())
