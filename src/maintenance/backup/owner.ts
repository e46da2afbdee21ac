// Identifies the network of a data directory or a backup: the address of its controller, and its root certificate.
import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { computeFingerprint256 } from '../../pki/certificates.ts'
import { getAdvertisedAddress } from '../../settings/addresses.ts'
import { readConfig } from '../../settings/config.ts'
import { getDataPaths, runAsOwner } from '../../settings/data-directory.ts'
import { ConfigError } from '../../settings/setting-types.ts'

export interface BackupOwner {
  /** `host:port`; empty if the settings in the directory name none. */
  readonly address: string
  /** The SHA-256 of the root certificate, in hexadecimal. */
  readonly rootFingerprint: string
}

/** Identifies the network of a data directory. @param env variables that change its settings, as those of the process */
export function readOwner(directory: string, env: NodeJS.ProcessEnv = {}): BackupOwner {
  const { config, pki } = getDataPaths(directory)
  return runAsOwner(directory, () => {
    const root = new X509Certificate(readFileSync(join(pki, 'root.crt')))
    return { address: readAddress(config, env), rootFingerprint: computeFingerprint256(root) }
  })
}

function readAddress(config: string, env: NodeJS.ProcessEnv): string {
  try {
    return getAdvertisedAddress(readConfig(config, env))
  } catch (error) {
    // A backup is made of settings that do not work, too.
    if (error instanceof ConfigError) return ''
    throw error
  }
}

/** An owner in a sentence. */
export function describeOwner({ address, rootFingerprint }: BackupOwner): string {
  return `${address || 'a controller without an address'} (root SHA-256 ${rootFingerprint})`
}

/** Whether two belong to the same network; also if it is unknown of either. */
export function isSameNetwork(one: BackupOwner | undefined, other: BackupOwner | undefined): boolean {
  return one === undefined || other === undefined || one.rootFingerprint === other.rootFingerprint
}
