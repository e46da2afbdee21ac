// Finds what a controller cannot start without in a data directory or an unpacked backup: the same is required of a backup when it is made
// and when it is restored.
import { existsSync, statSync } from 'node:fs'
import { SESSION_TOKEN_KEY_BYTES } from '../../authentication/api-sessions/api-session-tokens.ts'
import { Authority } from '../../pki/authority.ts'
import { getDataPaths, runAsOwner } from '../../settings/data-directory.ts'
import { AUDIT_KEY_BYTES } from '../../storage/audit/audit-seal.ts'
import { SECRETS_KEY_BYTES } from '../../storage/secrets/secret-cipher.ts'

/** A defect of a folder because of which no controller starts in it. */
export interface MissingEssential {
  /** The end of a sentence whose subject is the folder. */
  readonly reason: string
  readonly cause?: unknown
}

/** Returns what is wrong with the settings, keys and certificates in a folder; undefined if a controller can use them. */
export function findMissingEssential(folder: string): MissingEssential | undefined {
  const { config, tokenKey, auditKey, secretsKey, previousSecretsKey, pki } = getDataPaths(folder)
  const toName = (path: string) => path.slice(folder.length + 1)
  const missing = [config, auditKey, secretsKey].find((path) => !existsSync(path))
  if (missing !== undefined) return { reason: `${toName(missing)} is missing in it` }
  const lengths: readonly [string, number][] = [
    [tokenKey, SESSION_TOKEN_KEY_BYTES],
    [auditKey, AUDIT_KEY_BYTES],
    [secretsKey, SECRETS_KEY_BYTES],
    [previousSecretsKey, SECRETS_KEY_BYTES],
  ]
  const damaged = lengths.find(([path, bytes]) => existsSync(path) && statSync(path).size !== bytes)
  if (damaged) return { reason: `${toName(damaged[0])} is damaged in it` }
  try {
    runAsOwner(folder, () => Authority.load(pki))
    return undefined
  } catch (error) {
    return { reason: `its certificates cannot be used: ${(error as Error).message}`, cause: error }
  }
}
