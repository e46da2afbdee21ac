// Data directories that were worked on by this user: where an unreachable controller may have its data on this machine.
import { X509Certificate } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { writePrivateFile } from '../../src/pki/files.ts'

function listPath(env: NodeJS.ProcessEnv): string {
  return join(env.XDG_STATE_HOME || join(homedir(), '.local', 'state'), 'controller', 'data-directories')
}

function readDirectories(env: NodeJS.ProcessEnv): string[] {
  const path = listPath(env)
  return existsSync(path) ? readFileSync(path, 'utf8').split('\n').filter(Boolean) : []
}

/** Remembers a data directory. That is a convenience: where it cannot be written, nothing is lost. */
export function rememberDirectory(directory: string, env: NodeJS.ProcessEnv): void {
  try {
    const known = readDirectories(env)
    if (known.includes(directory)) return
    const stillThere = known.filter((other) => existsSync(rootPath(other)))
    writePrivateFile(listPath(env), `${[...stillThere, directory].join('\n')}\n`)
  } catch {
    // A service account without a home, as a rule.
  }
}

function rootPath(directory: string): string {
  return join(directory, 'pki', 'root.crt')
}

/** The first of the candidates, else of the remembered ones, that belongs to the controller with this root certificate. */
export function findDirectory(
  rootPem: string,
  candidates: readonly string[],
  env: NodeJS.ProcessEnv,
): string | undefined {
  try {
    const wanted = new X509Certificate(rootPem).fingerprint256
    return [...candidates, ...readDirectories(env)].find((directory) => {
      const path = rootPath(directory)
      return existsSync(path) && new X509Certificate(readFileSync(path)).fingerprint256 === wanted
    })
  } catch {
    return undefined
  }
}
