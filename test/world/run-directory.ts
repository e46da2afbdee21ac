// Gives the run a directory for all of its temporary files, which is removed at its end: in memory if there is room, because a test
// waits for what it writes.
import { chmodSync, mkdtempSync, rmSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

// Linux has it on every system that shares memory between processes; containers often get one of 64 MB.
const IN_MEMORY = '/dev/shm'
const MIN_FREE_BYTES = 4 * 2 ** 30

export default function setup() {
  const before = process.env.TMPDIR
  const directory = mkdtempSync(join(hasRoom(IN_MEMORY) ? IN_MEMORY : tmpdir(), 'tests-'))
  // Some tests act as another account.
  chmodSync(directory, 0o1777)
  process.env.TMPDIR = directory
  return () => {
    if (before === undefined) delete process.env.TMPDIR
    else process.env.TMPDIR = before
    rmSync(directory, { recursive: true, force: true, maxRetries: 3 })
  }
}

function hasRoom(path: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(path)
    return bavail * bsize >= MIN_FREE_BYTES
  } catch {
    return false
  }
}
