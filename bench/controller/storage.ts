// The storage of data directories, on which the price of a commit depends.
import { statfsSync } from 'node:fs'

// statfs(2)
const TMPFS_MAGIC = 0x01021994

/** Memory, or a disk. */
export function storageOf(directory: string): 'tmpfs' | 'disk' {
  return statfsSync(directory).type === TMPFS_MAGIC ? 'tmpfs' : 'disk'
}
