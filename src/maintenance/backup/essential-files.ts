// Finds what a controller cannot start without in a data directory or an unpacked backup: the same is required of a backup when it is made
// and when it is restored.
import { existsSync } from 'node:fs'
import { Authority } from '../../pki/authority.ts'
import { getDataPaths, runAsOwner } from '../../settings/data-directory.ts'

/** A defect of a folder because of which no controller starts in it. */
export interface MissingEssential {
  /** The end of a sentence whose subject is the folder. */
  readonly reason: string
  readonly cause?: unknown
}

/** Returns what is wrong with the settings, keys and certificates in a folder; undefined if a controller can use them. */
export function findMissingEssential(folder: string): MissingEssential | undefined {
  const { config, auditKey, secretsKey, pki } = getDataPaths(folder)
  const missing = [config, auditKey, secretsKey].find((path) => !existsSync(path))
  if (missing !== undefined) return { reason: `${missing.slice(folder.length + 1)} is missing in it` }
  try {
    runAsOwner(folder, () => Authority.load(pki))
    return undefined
  } catch (error) {
    return { reason: `its certificates cannot be used: ${(error as Error).message}`, cause: error }
  }
}
