// A disk that a test can fill: a small file system in memory where one may be mounted, else a limit on the size of files.
import { execFileSync, spawnSync } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const DISK_MB = 24

export interface SmallDisk {
  readonly path: string
  /** Takes all the room that is left, as far as the process is concerned. */
  fill(pid: number): void
  /** Gives it back. */
  free(pid: number): void
  remove(): void
}

/** @throws if this machine can neither mount a file system nor limit a process */
export function makeSmallDisk(): SmallDisk {
  const path = mkdtempSync(join(tmpdir(), 'small-disk-'))
  const { status } = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK_MB}m,mode=700`, 'small-disk', path])
  return status === 0 ? mountedDisk(path) : limitedDisk(path)
}

function mountedDisk(path: string): SmallDisk {
  const filler = join(path, 'filler')
  return {
    path,
    fill: () => writeUntilFull(filler),
    free: () => rmSync(filler, { force: true }),
    remove() {
      execFileSync('umount', [path])
      rmSync(path, { recursive: true })
    },
  }
}

function limitedDisk(path: string): SmallDisk {
  const limit = (pid: number, bytes: string) => execFileSync('prlimit', [`--pid=${pid}`, `--fsize=${bytes}:unlimited`])
  return {
    path,
    fill: (pid) => void limit(pid, '1'),
    free: (pid) => void limit(pid, 'unlimited'),
    remove: () => rmSync(path, { recursive: true, force: true }),
  }
}

function writeUntilFull(filler: string): void {
  const file = openSync(filler, 'a')
  // The last bytes are taken, too.
  const pieces = [1024 * 1024, 4096, 1].map((size) => Buffer.alloc(size))
  try {
    for (const piece of pieces) while (takes(file, piece));
  } finally {
    closeSync(file)
  }
}

function takes(file: number, bytes: Buffer): boolean {
  try {
    writeSync(file, bytes)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
    return false
  }
}
