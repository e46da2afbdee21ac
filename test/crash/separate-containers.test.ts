// Backups of one data directory by processes that do not see each other, as those of containers that share it.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { createBackupWorkspace } from '../../src/storage/sqlite/backup-workspaces.ts'
import { BINARY, cleanEnvironment, run } from '../world/binary.ts'
import { copyOfTemplate } from '../world/controller.ts'
import { lacks } from '../world/machine.ts'

const directory = copyOfTemplate()
const folder = mkdtempSync(join(tmpdir(), 'separate-containers-'))

afterAll(() => {
  for (const path of [folder, join(directory, '..')]) rmSync(path, { recursive: true, force: true })
})

const IN_CONTAINER = ['--map-root-user', '--pid', '--fork']
const hasContainers = spawnSync('unshare', [...IN_CONTAINER, 'true']).status === 0

it.skipIf(lacks('process ids of their own', hasContainers))('leave the work of each other alone', async () => {
  const workspace = createBackupWorkspace(directory)
  const backup = (name: string) => {
    const command = [process.execPath, BINARY, 'db', 'backup', join(folder, name), '--data-dir', directory]
    return run('unshare', [...IN_CONTAINER, ...command], cleanEnvironment())
  }

  const { code, stderr } = await backup('first')

  expect([code, stderr]).toEqual([0, expect.any(String)])
  expect(existsSync(workspace.folder)).toBe(true)
  workspace.remove()
  expect(existsSync(workspace.folder)).toBe(false)
})
