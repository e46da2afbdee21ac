// Whether `npm start` and `npm test` have to install the libraries first, and what they say if they cannot.
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'

// Outside of what TypeScript checks, as the rest of the build.
const built = '../../.ci/built.mjs'
const { isInstalled } = (await import(/* @vite-ignore */ built)) as { isInstalled(folder: string): boolean }

const failure = '../../.ci/install-failure.mjs'
const { describeInstallFailure } = (await import(/* @vite-ignore */ failure)) as {
  describeInstallFailure(output: string, path: string): string
}

const sqlite = { version: '1.0.0', integrity: 'sha512-a' }
const forOtherSystems = { version: '2.0.0', integrity: 'sha512-b', optional: true }
const wantedPackages = {
  '': { name: 'edge-controller' },
  'node_modules/sqlite': sqlite,
  'node_modules/fsevents': forOtherSystems,
}

/** A folder with a lock file, and with what npm says it has installed. */
function folderWith(packages?: Record<string, unknown>): string {
  const folder = mkdtempSync(join(tmpdir(), 'prepare-'))
  writeFileSync(join(folder, 'package-lock.json'), JSON.stringify({ packages: wantedPackages }))
  mkdirSync(join(folder, 'node_modules'))
  if (packages) {
    writeFileSync(join(folder, 'node_modules/.package-lock.json'), JSON.stringify({ packages }))
  }
  return folder
}

describe('the libraries', () => {
  it('are installed if npm has installed those of the lock file, without the optional ones of other systems', () => {
    expect(isInstalled(folderWith({ 'node_modules/sqlite': sqlite }))).toBe(true)
  })

  it('are not installed if one is missing or has another version, or if an installation did not complete', () => {
    expect(isInstalled(folderWith({}))).toBe(false)
    expect(isInstalled(folderWith({ 'node_modules/sqlite': { ...sqlite, version: '0.9.0' } }))).toBe(false)
    expect(isInstalled(folderWith())).toBe(false)
  })
})

/** The output of npm 11 on a machine without a network and a compiler. */
const FAILED_INSTALLATION = `npm error code 1
npm error path /srv/clone/node_modules/better-sqlite3
npm error command failed
npm error command sh -c prebuild-install || node-gyp rebuild --release
npm error prebuild-install warn install getaddrinfo ENOTFOUND github.com
npm error gyp info it worked if it ends with ok
npm error gyp ERR! find Python Python is not set from environment variable PYTHON
npm error gyp ERR! stack Error: Could not find any Python installation to use
`

describe('an installation that fails', () => {
  const folderWithPrograms = (...programs: string[]) => {
    const folder = mkdtempSync(join(tmpdir(), 'programs-'))
    for (const program of programs) writeFileSync(join(folder, program), '')
    return folder
  }

  it('names in one line the library, what it needs, and what the machine lacks', () => {
    expect(describeInstallFailure(FAILED_INSTALLATION, folderWithPrograms('python3', 'make'))).toBe(
      'better-sqlite3 could not be installed: its compiled file for this system could not be downloaded ' +
        '(getaddrinfo ENOTFOUND github.com), and compiling it needs Python 3, make, a C++ compiler; missing here: a C++ compiler.',
    )
  })

  it('refers to npm if the machine has all that is needed, or npm names no library', () => {
    const path = folderWithPrograms('python3', 'make', 'g++')

    expect(describeInstallFailure(FAILED_INSTALLATION, path)).toMatch(/; npm says above why that failed\.$/)
    expect(describeInstallFailure('npm error code ETIMEDOUT', path)).toBe(
      'The libraries could not be installed: npm says above why.',
    )
  })
})
