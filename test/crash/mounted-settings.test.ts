// A restore into a directory whose settings are a mount point of their own, as they are in containers.
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { getDataPaths } from '../../src/settings/data-directory.ts'
import { BINARY, cleanEnvironment, controller, run } from '../world/binary.ts'
import { copyOfTemplate } from '../world/controller.ts'
import { lacks } from '../world/machine.ts'

const env = cleanEnvironment()
const directory = copyOfTemplate()
const { config, tokenKey } = getDataPaths(directory)
const folder = mkdtempSync(join(tmpdir(), 'mounted-settings-'))

afterAll(() => {
  for (const path of [folder, join(directory, '..')]) rmSync(path, { recursive: true, force: true })
})

/** Runs a command while a file is mounted at the settings, as another process sees them. */
function withMountedSettings(mounted: string, ...args: readonly string[]) {
  const script = 'mount --bind "$1" "$2" && shift 2 && exec "$@"'
  const command = [process.execPath, BINARY, ...args]
  return run('unshare', ['--map-root-user', '--mount', 'sh', '-c', script, 'sh', mounted, config, ...command], env)
}

const hasMounts = spawnSync('unshare', ['--map-root-user', '--mount', 'mount', '--bind', folder, folder]).status === 0

it.skipIf(lacks('mounts of an own', hasMounts))('keeps the settings, and restores all else', async () => {
  const file = join(folder, 'backup')
  expect((await controller(['db', 'backup', file, '--data-dir', directory], env)).code).toBe(0)
  const ofBackup = readFileSync(tokenKey)
  const mounted = join(folder, 'config.yaml')
  cpSync(config, mounted)
  writeFileSync(mounted, 'log: { level: warn }\n', { flag: 'a' })
  writeFileSync(tokenKey, 'of the directory')

  const { code, stderr } = await withMountedSettings(mounted, 'db', 'restore', file, '--data-dir', directory, '--yes')

  expect([code, stderr]).toEqual([0, expect.any(String)])
  expect(readFileSync(tokenKey)).toEqual(ofBackup)
  expect(readFileSync(mounted, 'utf8')).toContain('level: warn')
  expect(existsSync(join(directory, 'restored'))).toBe(false)
})
