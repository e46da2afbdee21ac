// Which build this is.
import { readFileSync } from 'node:fs'

interface Manifest {
  readonly version: string
  readonly revision?: string
  readonly buildDate?: string
}

const manifest = readManifest()

export const version = {
  version: `v${manifest.version}`,
  revision: manifest.revision ?? 'local',
  buildDate: manifest.buildDate ?? 'local',
  runtimeVersion: `node ${process.version}`,
} as const

/** package.json stands above the sources, and one folder further above what was built from them. */
function readManifest(): Manifest {
  for (const up of ['../package.json', '../../package.json']) {
    try {
      return JSON.parse(readFileSync(new URL(up, import.meta.url), 'utf8')) as Manifest
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    }
  }
  throw new Error('package.json is missing')
}
