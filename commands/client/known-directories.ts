// The data directories that this user has opened, to suggest one if its controller is unreachable.
import { X509Certificate } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { writePrivateFile } from '../../src/pki/files.ts'

function getListPath(env: NodeJS.ProcessEnv): string {
  return join(env.XDG_STATE_HOME || join(homedir(), '.local', 'state'), 'controller', 'data-directories')
}

function readDirectories(env: NodeJS.ProcessEnv): string[] {
  const path = getListPath(env)
  return existsSync(path) ? readFileSync(path, 'utf8').split('\n').filter(Boolean) : []
}

/** Adds a directory to the list. Errors are ignored, because the list is only used for hints. */
export function rememberDirectory(directory: string, env: NodeJS.ProcessEnv): void {
  try {
    const directories = readDirectories(env)
    if (directories.includes(directory)) return
    const existing = directories.filter((other) => existsSync(toRootPath(other)))
    writePrivateFile(getListPath(env), `${[...existing, directory].join('\n')}\n`)
  } catch {
    // For example, a service account without a home directory.
  }
}

function toRootPath(directory: string): string {
  return join(directory, 'pki', 'root.crt')
}

/** The first of the candidates, else of the list, that belongs to the controller with this root certificate. */
export function findDirectory(
  rootPem: string,
  candidates: readonly string[],
  env: NodeJS.ProcessEnv,
): string | undefined {
  try {
    const fingerprint = new X509Certificate(rootPem).fingerprint256
    return [...candidates, ...readDirectories(env)].find((directory) => {
      const path = toRootPath(directory)
      return existsSync(path) && new X509Certificate(readFileSync(path)).fingerprint256 === fingerprint
    })
  } catch {
    return undefined
  }
}
