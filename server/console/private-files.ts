// Keeps the console from serving what other accounts may not read, and the data of the controller.
import { readdir, realpath, stat } from 'node:fs/promises'
import { dirname, join, sep } from 'node:path'

const READABLE_BY_OTHERS = 0o004
const ENTERED_BY_OTHERS = 0o001

/** The first of some directories that contains `root`, or is contained in it, by their real paths. */
export async function findOverlap(root: string, directories: readonly string[]): Promise<string | undefined> {
  for (const directory of directories) {
    const other = await realpath(directory).catch(() => undefined)
    if (other !== undefined && (isInside(root, other) || isInside(other, root))) return directory
  }
  return undefined
}

function isInside(path: string, directory: string): boolean {
  return path === directory || path.startsWith(directory.endsWith(sep) ? directory : directory + sep)
}

/** The first file below a directory that can be served, and that other accounts may not read. */
export async function findPrivateFile(root: string): Promise<string | undefined> {
  // Links are left out: what they lead to is found by itself if it is below the directory, and is not served otherwise.
  const entries = (await readdir(root, { withFileTypes: true })).filter(({ name }) => !name.startsWith('.'))
  for (const entry of entries) {
    const path = join(root, entry.name)
    if (entry.isFile() && !(await isReadable(path))) return path
    if (!entry.isDirectory()) continue
    const file = await findPrivateFile(path)
    if (file !== undefined) return file
    if (!(await isEntered(path)) && (await readdir(path)).length > 0) return path
  }
  return undefined
}

/** Whether other accounts may read a file, and enter the directories below `root` that lead to it. */
export async function isReadableByOthers(root: string, path: string): Promise<boolean> {
  if (!(await isReadable(path))) return false
  for (let at = dirname(path); isInside(at, root) && at !== root; at = dirname(at)) {
    if (!(await isEntered(at))) return false
  }
  return true
}

async function isReadable(path: string): Promise<boolean> {
  return ((await stat(path)).mode & READABLE_BY_OTHERS) !== 0
}

async function isEntered(path: string): Promise<boolean> {
  return ((await stat(path)).mode & ENTERED_BY_OTHERS) !== 0
}
