// Whether `npm start` and `npm test` have to install the libraries first.
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'

// Outside of what TypeScript checks, as the rest of the build.
const built = '../../.ci/built.mjs'
const { isInstalled } = (await import(/* @vite-ignore */ built)) as { isInstalled(folder: string): boolean }

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
