// Knows whether dist/ is what the sources would build now: run as a program, it marks dist/ as just built.
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const MARKER = 'dist/.built'

/** The digest of the names and contents of files. */
export function digest(files) {
  const hash = createHash('sha256')
  for (const file of files) hash.update(file).update(readFileSync(join(root, file)))
  return hash.digest('hex')
}

/** Whether a marker was written with this value. */
export function isMarked(marker, value) {
  const path = join(root, marker)
  return existsSync(path) && readFileSync(path, 'utf8') === value
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
    'tsconfig.build.json',
    ...['src', 'server', 'commands', 'bench', '.ci'].flatMap(listSources),
  ])
}

/** Whether dist/ was built from the sources as they are. */
export function isBuilt() {
  return isMarked(MARKER, digestSources())
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(join(root, MARKER), digestSources())
