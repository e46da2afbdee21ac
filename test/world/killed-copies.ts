// Copies a directory at each moment at which a file is put in place: a process that is killed at that moment leaves the same files.
import { execFileSync } from 'node:child_process'
import fs, { mkdirSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'

/**
 * Runs something that changes a directory, and copies the directory before and after each rename.
 * @param copies the folder for the copies
 * @returns the copies, in the order of their moments
 */
export async function copyAtEachRename(directory: string, copies: string, run: () => unknown): Promise<string[]> {
  const { renameSync } = fs
  const paths: string[] = []
  mkdirSync(copies)
  // By a process of its own, because SQLite's locks on a file end when this process closes the file.
  const copy = () => {
    const path = join(copies, String(paths.length + 1))
    execFileSync('cp', ['-a', directory, path])
    paths.push(path)
  }
  fs.renameSync = (from, to) => {
    copy()
    renameSync(from, to)
    copy()
  }
  syncBuiltinESMExports()
  try {
    await run()
  } finally {
    fs.renameSync = renameSync
    syncBuiltinESMExports()
  }
  return paths
}
