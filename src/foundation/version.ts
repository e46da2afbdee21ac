// The version of this build.
import { readFileSync } from 'node:fs'

interface PackageManifest {
  readonly version: string
}

/** Written by the build; sources that run without one say neither. */
interface BuildInfo {
  readonly revision?: string
  readonly buildDate?: string
}

// package.json is two folders above this file, and also above what is built from it.
const manifest = readJson<PackageManifest>('../../package.json')
if (!manifest) throw new Error('package.json is missing')
const build = readJson<BuildInfo>('../build.json')

export const version = {
  version: `v${manifest.version}`,
  revision: build?.revision ?? 'unknown',
  buildDate: build?.buildDate ?? 'unknown',
  runtimeVersion: `node ${process.version}`,
} as const

/** The content of a JSON file, by its path from here; undefined if it does not exist. */
function readJson<T>(path: string): T | undefined {
  try {
    return JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8')) as T
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    return undefined
  }
}
