// The options that every command gives to work on a data directory.
import type { DirectoryOptions } from '../../server/cluster/cluster-directory.ts'
import { systemClock } from '../../src/foundation/clock.ts'
import { getUserName } from './connection.ts'

export function readDirectoryOptions(directory: string): DirectoryOptions {
  return { directory, env: process.env, clock: systemClock, osUser: getUserName() }
}
