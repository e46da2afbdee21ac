// Python packages for the tests that need other people's programs, in an environment of their own below `.cache`.
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { run } from './binary.ts'

const CACHE = join(import.meta.dirname, '../../.cache/clients')
const BIN = join(CACHE, 'venv/bin')

/** Whether there is a Python here. Without one the tests are skipped and say so, but for continuous integration. */
export async function hasPython(): Promise<boolean> {
  const probe = await run('python3', ['-c', 'import venv, ensurepip'], process.env).catch(() => undefined)
  const isThere = probe?.code === 0
  if (!isThere && process.env.CI) throw new Error('Python is needed for these tests')
  if (!isThere) process.stdout.write('SKIPPED: there is no python3 here\n')
  return isThere
}

/** Installs a package, `name==version`, if it is not there, and returns the folder of the environment's programs. */
export async function installPackage(requirement: string): Promise<string> {
  const marker = join(CACHE, `${requirement}.installed`)
  if (existsSync(marker)) return BIN
  mkdirSync(CACHE, { recursive: true })
  await succeed('python3', ['-m', 'venv', join(CACHE, 'venv')])
  await succeed(join(BIN, 'python'), [
    ...['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check'],
    requirement,
  ])
  writeFileSync(marker, '')
  return BIN
}

async function succeed(command: string, args: readonly string[]): Promise<void> {
  const { code, stderr } = await run(command, args, process.env)
  if (code !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${code}: ${stderr}`)
}
