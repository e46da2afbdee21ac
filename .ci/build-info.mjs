// Writes down which revision was built and when, so that a running controller can say it: dist/build.json.
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))

/** The commit that the sources are at, marked if they differ from it; undefined outside a clone. */
function revisionOfClone() {
  try {
    const options = { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }
    return execFileSync('git', ['describe', '--always', '--dirty', '--abbrev=12', '--exclude=*'], options).trim()
  } catch {
    return undefined
  }
}

const revision = revisionOfClone()
const buildDate = new Date().toISOString()
writeFileSync(`${root}dist/build.json`, `${JSON.stringify({ ...(revision ? { revision } : {}), buildDate })}\n`)
