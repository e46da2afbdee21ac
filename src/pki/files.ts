// Files that hold secrets, or must survive: private to their owner, whole or not there at all.
import { closeSync, fsyncSync, mkdirSync, openSync, renameSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'

/** Makes a directory, and those above it, that only its owner can enter. */
export function makePrivateDirectory(path: string): void {
  mkdirSync(path, { recursive: true, mode: 0o700 })
}

/** Writes a file with mode 0600; a crash leaves the old content or the new one, never half of it. */
export function writePrivateFile(path: string, content: string | Uint8Array): void {
  makePrivateDirectory(dirname(path))
  const temporary = `${path}.new`
  const file = openSync(temporary, 'w', 0o600)
  try {
    writeSync(file, typeof content === 'string' ? Buffer.from(content) : content)
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
  renameSync(temporary, path)
  syncDirectory(dirname(path))
}

function syncDirectory(path: string): void {
  const directory = openSync(path, 'r')
  try {
    fsyncSync(directory)
  } finally {
    closeSync(directory)
  }
}
