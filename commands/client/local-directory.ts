// Finds the data directory of a controller on this machine, without a flag that names it.

import { dataDirectoryFlag, isDirectoryInitialized, resolveDataDirectory } from './data-directory.ts'
import { findDirectory } from './known-directories.ts'
import { type Profile, Profiles } from './profiles.ts'

/** The flag of the commands that work on the database of a controller. */
export const databaseDirectoryFlag = {
  ...dataDirectoryFlag,
  description:
    'Data directory of the controller. Default: CONTROLLER_DATA_DIR, else "controller" in the data home of the user, else, if that is not one, that of the controller of the current profile on this machine.',
}

/** The data directory of the controller with this URL, if it is on this machine. */
export function findLocalDirectory(url: string): string | undefined {
  const profiles = Profiles.open(process.env)
  const profile = profiles.names.map((name) => profiles.get(name)).find((candidate) => candidate?.url === url)
  return profile && findDirectoryOf(profile)
}

function findDirectoryOf({ rootPem }: Profile): string | undefined {
  const candidates = [resolveDataDirectory(process.env.CONTROLLER_DATA_DIR || undefined), resolveDataDirectory('data')]
  return findDirectory(rootPem, candidates, process.env)
}

/** The data directory for a command on a database, as `databaseDirectoryFlag` describes it. */
export async function findDataDirectory(flag: string | undefined): Promise<string> {
  const directory = resolveDataDirectory(flag)
  if (flag !== undefined || (await isDirectoryInitialized(directory))) return directory
  const profiles = Profiles.open(process.env)
  const profile = profiles.currentName === undefined ? undefined : profiles.get(profiles.currentName)
  return (profile && findDirectoryOf(profile)) ?? directory
}
