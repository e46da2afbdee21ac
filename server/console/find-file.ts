// Finds the file of the console that a path names, inside its directory only.
import { realpath, stat } from 'node:fs/promises'
import { join, relative, sep } from 'node:path'
import { isReadableByOthers } from './private-files.ts'

/**
 * Returns the path of a regular file, relative to `root` and without symbolic links; undefined if there is none: also for hidden
 * files, for files that other accounts may not read, for directories, and for links that lead out.
 * @param root the real path of the directory
 * @param path the decoded path below it, with slashes
 */
export async function findFile(root: string, path: string): Promise<string | undefined> {
  const segments = path.split('/')
  if (!segments.every(isPlainName)) return undefined
  try {
    const file = await realpath(join(root, ...segments))
    const inside = relative(root, file)
    // A link may lead to a file that no path may name.
    if (!file.startsWith(root + sep) || !inside.split(sep).every(isPlainName)) return undefined
    return (await stat(file)).isFile() && (await isReadableByOthers(root, file)) ? inside : undefined
  } catch {
    return undefined
  }
}

function isPlainName(segment: string): boolean {
  return segment !== '' && !segment.startsWith('.') && !/[\\\0]/.test(segment)
}
