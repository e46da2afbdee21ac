// Finds mount points, such as files that a container gets one by one: the system renames none of them, and replaces none by a rename.
import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'

const MOUNTS = '/proc/self/mountinfo'

/** Returns the first of the paths at which something is mounted. Only Linux lists its mount points: elsewhere it is undefined. */
export function findMountPoint(paths: readonly string[]): string | undefined {
  if (!existsSync(MOUNTS)) return undefined
  const mounted = new Set(readFileSync(MOUNTS, 'utf8').split('\n').map(parseMountPoint))
  return paths.find((path) => existsSync(path) && mounted.has(join(realpathSync(dirname(path)), basename(path))))
}

/** The path is the fifth field, in which blanks and backslashes are octal. */
function parseMountPoint(line: string): string {
  const [, , , , path = ''] = line.split(' ')
  return path.replace(/\\([0-7]{3})/g, (_escape, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)))
}
