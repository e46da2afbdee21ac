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

// package.json stands above the sources, and one folder further above what was built from them.
const manifest = readFirst<PackageManifest>('../../package.json', '../../../package.json')
if (!manifest) throw new Error('package.json is missing')
const build = readFirst<BuildInfo>('../../build.json')

export const version = {
  version: `v${manifest.version}`,
  revision: build?.revision ?? 'unknown',
  buildDate: build?.buildDate ?? 'unknown',
  runtimeVersion: `node ${process.version}`,
} as const

/** The content of the first of some JSON files that exists, by its path from here. */
function readFirst<T>(...paths: readonly string[]): T | undefined {
  for (const path of paths) {
    try {
      return JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8')) as T
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    }
  }
  return undefined
}
