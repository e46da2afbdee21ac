// The files of OpenZiti's controller while they are read: they must not be in use, and are not changed.
import { createHash } from 'node:crypto'
import { createReadStream, existsSync, readFileSync, statSync } from 'node:fs'
import { SourceError } from './source-error.ts'

const LOCKS = '/proc/locks'

/** @throws SourceError if a process has the database open: its pages change while they are read */
export function requireUnlocked(path: string): void {
  if (!existsSync(path)) {
    const remedy = '--database FILE, or --path-prefix OLD=NEW if the files are elsewhere on this machine'
    throw new SourceError('NO_DATABASE', `${path}, the database of the configuration, does not exist`, remedy)
  }
  // Linux lists locks; elsewhere the digest tells a database that changes.
  if (!existsSync(LOCKS)) return
  const { ino } = statSync(path)
  const isLocked = readFileSync(LOCKS, 'utf8')
    .split('\n')
    .some((line) => / FLOCK /.test(line) && line.includes(`:${ino} `))
  if (!isLocked) return
  const remedy = "stop OpenZiti's controller, or adopt a snapshot: ziti edge db snapshot, then --database FILE"
  throw new SourceError('DATABASE_IN_USE', `a process has ${path} open`, remedy)
}

/** Returns the SHA-256 of a file, in hexadecimal. */
export async function computeFileDigest(path: string): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer)
  return hash.digest('hex')
}
