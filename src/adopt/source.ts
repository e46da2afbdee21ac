// The source of an adoption: the files of the former controller, by its configuration or stated one by one.
import { type ClientBundle, readClientBundle } from './client-bundles.ts'
import { readSourceAuthority, type SourceAuthority } from './source-authority.ts'
import { SourceConfiguration } from './source-configuration.ts'
import { type SourceParts, toSourceConfiguration } from './source-parts.ts'
import type { SourceDatabase } from './source-records.ts'
import { findDatabase } from './source-settings.ts'

export interface SourceOptions {
  /** The configuration of OpenZiti's controller, or what it would state. */
  readonly configuration: string | SourceParts
  /** Its database, if it is not where the configuration says: a snapshot, for example. */
  readonly database?: string
  /** The key of its root, if it is not next to the certificate. */
  readonly rootKey?: string
  /** Files of clients with the authorities that they trust. */
  readonly clientBundles?: readonly string[]
  /** The variables that its configuration names. */
  readonly env: Readonly<Record<string, string | undefined>>
  readonly pathPrefixes?: Readonly<Record<string, string>>
}

/** The files of the former controller, which stay as they are. */
export interface Source {
  readonly path: string
  readonly digest: string
  readonly database: SourceDatabase
  readonly authority: SourceAuthority
  readonly clientBundles: readonly ClientBundle[]
}

/** The parts of a source, as its configuration names them. */
export interface SourceLocation {
  readonly configuration: SourceConfiguration
  readonly authority: SourceAuthority
  readonly databasePath: string
  readonly clientBundles: readonly ClientBundle[]
}

/** Reads the configuration of the former controller and its authorities, and finds its database. @throws SourceError */
export function locateSource(options: SourceOptions, now: number): SourceLocation {
  const { configuration: stated, env, pathPrefixes, database, rootKey, clientBundles = [] } = options
  const configuration =
    typeof stated === 'string'
      ? SourceConfiguration.read({ path: stated, env, ...(pathPrefixes ? { pathPrefixes } : {}) })
      : toSourceConfiguration(stated)
  const authority = readSourceAuthority(configuration, now, rootKey)
  const databasePath = database ?? findDatabase(configuration)
  return { configuration, authority, databasePath, clientBundles: clientBundles.map(readClientBundle) }
}
