// Whether `npm start` and `npm test` have to install the libraries first, and what they say if they cannot.
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'

// Outside of what TypeScript checks, as the rest of the build.
const built = '../../.ci/built.mjs'
const { isInstalled, SQLITE_LIBRARY } = (await import(/* @vite-ignore */ built)) as {
  isInstalled(folder: string): boolean
  SQLITE_LIBRARY: string
}

const failure = '../../.ci/install-failure.mjs'
const { describeInstallFailure, findFailedLibrary } = (await import(/* @vite-ignore */ failure)) as {
  describeInstallFailure(library: string, path: string): string
  findFailedLibrary(output: string): string | undefined
}

const sqlite = { version: '1.0.0', integrity: 'sha512-a' }
const forOtherSystems = { version: '2.0.0', integrity: 'sha512-b', optional: true }
/** Optional, but not for this version of Node.js. */
const needed = { version: '3.0.0', integrity: 'sha512-c', optional: true }
const installed = {
  'node_modules/sqlite': sqlite,
  [`node_modules/${SQLITE_LIBRARY}`]: needed,
}
const wantedPackages = {
  '': { name: 'edge-controller' },
  ...installed,
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
    expect(isInstalled(folderWith(installed))).toBe(true)
  })

  it('are not installed if one is missing or has another version, or if an installation did not complete', () => {
    expect(isInstalled(folderWith({}))).toBe(false)
    expect(isInstalled(folderWith({ ...installed, 'node_modules/sqlite': { ...sqlite, version: '0.9.0' } }))).toBe(
      false,
    )
    expect(isInstalled(folderWith())).toBe(false)
  })

  it('are not installed if npm left out one that this version of Node.js needs', () => {
    expect(isInstalled(folderWith({ 'node_modules/sqlite': sqlite }))).toBe(false)
  })
})

/** The output of npm 11 on a machine without a compiler. */
const FAILED_INSTALLATION = `npm error code 1
npm error path /srv/clone/node_modules/argon2
npm error command failed
npm error gyp ERR! stack Error: Could not find any Python installation to use
`

describe('a library that cannot be installed', () => {
  const folderWithPrograms = (...programs: string[]) => {
    const folder = mkdtempSync(join(tmpdir(), 'programs-'))
    for (const program of programs) writeFileSync(join(folder, program), '')
    return folder
  }

  it('is the one that npm names, if it names one', () => {
    expect(findFailedLibrary(FAILED_INSTALLATION)).toBe('argon2')
    expect(findFailedLibrary('npm error code ETIMEDOUT')).toBeUndefined()
  })

  it('is named in one line with what it needs, and what the machine lacks', () => {
    expect(describeInstallFailure('argon2', folderWithPrograms('python3', 'make'))).toBe(
      'argon2 could not be installed: there is no compiled file for this system, or it could not be downloaded; ' +
        'compiling it needs Python 3, make, and a C++ compiler, of which this machine lacks a C++ compiler.',
    )
    expect(describeInstallFailure('argon2', folderWithPrograms('python3', 'make', 'g++'))).toMatch(
      /a C\+\+ compiler\.$/,
    )
  })

  it('refers to a later version of Node.js, which brings what SQLite needs', () => {
    expect(describeInstallFailure('better-sqlite3-12', folderWithPrograms())).toMatch(
      /Node\.js 22\.14 or later does without/,
    )
  })
})
