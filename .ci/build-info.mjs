// Writes down which revision was built, and its time, so that a running controller can say it: dist/build.json. Two builds of one
// revision are the same byte by byte, so the time is that of the revision, not of the build.
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))

/** What git prints about the sources; undefined outside a clone. */
function askGit(...args) {
  try {
    const options = { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }
    return execFileSync('git', args, options).trim()
  } catch {
    return undefined
  }
}

/**
 * The commit that the sources are at, marked if they differ from it, and its time. SOURCE_DATE_EPOCH, in seconds since 1970, states
 * another time. Outside a clone there is no revision, and the time is the present.
 */
export function readBuildInfo({ SOURCE_DATE_EPOCH } = process.env) {
  const revision = askGit('describe', '--always', '--dirty', '--abbrev=12', '--exclude=*')
  const seconds = SOURCE_DATE_EPOCH ?? askGit('log', '-1', '--format=%ct')
  const buildDate = (seconds ? new Date(Number(seconds) * 1000) : new Date()).toISOString()
  return { ...(revision ? { revision } : {}), buildDate }
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  writeFileSync(`${root}dist/build.json`, `${JSON.stringify(readBuildInfo())}\n`)
