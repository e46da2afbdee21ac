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

/** Identifies the network of a data directory. @param address that of its controller, if the settings in the directory are not all */
export function readOwner(directory: string, address = readAddress(directory, {})): BackupOwner {
  const { pki } = getDataPaths(directory)
  const root = runAsOwner(directory, () => new X509Certificate(readFileSync(join(pki, 'root.crt'))))
  return { address, rootFingerprint: computeFingerprint256(root) }
}

/** The address of the controller of a data directory: `host:port`, or empty. @param env variables that change its settings */
export function readAddress(directory: string, env: NodeJS.ProcessEnv): string {
  const { config } = getDataPaths(directory)
  try {
    return getAdvertisedAddress(runAsOwner(directory, () => readConfig(config, env)))
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
