// Says why a file cannot be read or written: the path, the reason, and whose file it is.
import { existsSync, statSync } from 'node:fs'
import { userInfo } from 'node:os'
import { dirname } from 'node:path'

const REASONS: Readonly<Record<string, string>> = {
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  ENOENT: 'no such file or directory',
  ENOTDIR: 'a part of the path is not a directory',
  EISDIR: 'it is a directory',
  EEXIST: 'a part of the path is not a directory',
  ELOOP: 'its symbolic links form a loop',
  ENAMETOOLONG: 'the path is too long',
  EROFS: 'the file system is read-only',
  ENOSPC: 'the disk is full',
  EDQUOT: 'the disk quota is used up',
  EFBIG: 'the file would be larger than this process may write',
  EMFILE: 'this process has too many open files',
}

/** Whether the error is of the file system. */
export function isFileError(error: unknown): error is NodeJS.ErrnoException {
  const { code, syscall } = (error ?? {}) as NodeJS.ErrnoException
  return typeof code === 'string' && code in REASONS && typeof syscall === 'string'
}

/** The reason why a path cannot be used, as the end of a sentence. An error of another kind is returned as its message. */
export function describeFileError(error: unknown, path: string): string {
  const { code = '', message } = error as NodeJS.ErrnoException
  const reason = REASONS[code]
  if (reason === undefined) return message
  const owner = code === 'EACCES' || code === 'EPERM' ? findOwner(path) : undefined
  return owner === undefined ? reason : `${reason}: ${owner}`
}

/** The reason why a file cannot be written, as the end of a sentence. It depends on the directory of the file. */
export function describeWriteError(error: unknown, path: string): string {
  const directory = dirname(path)
  if ((error as NodeJS.ErrnoException).code !== 'ENOENT') return describeFileError(error, directory)
  // Such as /proc, whose files the kernel makes.
  return existsSync(directory) ? 'no file can be created in its directory' : 'its directory does not exist'
}

/** The owner of the path, or of the nearest directory above it that this account can see. */
function findOwner(path: string): string | undefined {
  for (let at = path; ; at = dirname(at)) {
    const uid = findPathOwner(at)
    if (uid !== undefined) return `${at} belongs to the account ${uid}, and this command runs as ${getAccountName()}`
    if (dirname(at) === at) return undefined
  }
}

function findPathOwner(path: string): number | undefined {
  try {
    return statSync(path).uid
  } catch {
    return undefined
  }
}

function getAccountName(): string {
  try {
    const { username, uid } = userInfo()
    return `${username} (${uid})`
  } catch {
    return `the account ${process.getuid?.() ?? 'unknown'}`
  }
}
