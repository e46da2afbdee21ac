// Commands on a directory of which the settings, or other parts, are mount points of their own, as they are in containers.
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
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

/** Runs a command while something is mounted at a path, as another process sees it. */
function withMount(mounted: string, path: string, ...args: readonly string[]) {
  const script = 'mount --bind "$1" "$2" && shift 2 && exec "$@"'
  const command = [process.execPath, BINARY, ...args]
  return run('unshare', ['--map-root-user', '--mount', 'sh', '-c', script, 'sh', mounted, path, ...command], env)
}

const hasMounts = spawnSync('unshare', ['--map-root-user', '--mount', 'mount', '--bind', folder, folder]).status === 0

describe.skipIf(lacks('mounts of their own', hasMounts))('a directory with mount points', () => {
  const file = join(folder, 'backup')

  beforeAll(async () => {
    expect((await controller(['db', 'backup', file, '--data-dir', directory], env)).code).toBe(0)
  })

  it('keeps settings that are mounted when all else is restored', async () => {
    const ofBackup = readFileSync(tokenKey)
    const mounted = join(folder, 'config.yaml')
    cpSync(config, mounted)
    writeFileSync(mounted, 'log: { level: warn }\n', { flag: 'a' })
    writeFileSync(tokenKey, 'of the directory')

    const { code, stderr } = await withMount(mounted, config, 'db', 'restore', file, '--data-dir', directory, '--yes')

    expect([code, stderr]).toEqual([0, expect.any(String)])
    expect(readFileSync(tokenKey)).toEqual(ofBackup)
    expect(readFileSync(mounted, 'utf8')).toContain('level: warn')
    expect(existsSync(join(directory, 'restored'))).toBe(false)
  })

  it.each(['pki', 'secrets.key', 'controller.db'])('is not restored if %s is mounted, and works on', async (name) => {
    const target = join(folder, 'with a blank')
    cpSync(directory, target, { recursive: true })
    const mounted = join(folder, name)
    cpSync(join(target, name), mounted, { recursive: true })
    const before = readdirSync(target)

    const { code, stderr } = await withMount(
      mounted,
      join(target, name),
      ...['db', 'restore', file, '--data-dir', target, '--yes'],
    )

    expect([code, stderr]).toEqual([1, expect.stringContaining(`${join(target, name)} is a mount point`)])
    expect(stderr).toContain(`Try: unmount ${join(target, name)}`)
    expect(readdirSync(target)).toEqual(before)
    expect((await controller(['db', 'check', '--data-dir', target], env)).code).toBe(0)
    rmSync(target, { recursive: true })
  })

  it('begins no cluster if the settings are mounted', async () => {
    const mounted = join(folder, 'config.yaml')
    cpSync(config, mounted)
    const words = ['--database', 'postgres://controller@127.0.0.1:1/controller', '--name', 'one']

    const { code, stderr } = await withMount(mounted, config, 'cluster', 'init', '--data-dir', directory, ...words)

    expect([code, stderr]).toEqual([1, expect.stringContaining(`${config} is a mount point`)])
    expect(existsSync(join(directory, 'cluster.key'))).toBe(false)
  })
})
