// The version and build that a built controller reports.
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { run } from '../world/binary.ts'

const root = join(import.meta.dirname, '../..')
const isClone = spawnSync('git', ['rev-parse', '--git-dir'], { cwd: root }).status === 0

it('a build says its version and its time, and from a clone its revision', async () => {
  const script = `const { version } = await import(${JSON.stringify(join(root, 'dist/cli/version.js'))})
    console.log(JSON.stringify(version))`

  const { stdout } = await run(process.execPath, ['--input-type=module', '-e', script], process.env)

  const { version, revision, buildDate } = JSON.parse(stdout)
  expect(version).toMatch(/^v\d+\.\d+\.\d+$/)
  expect(new Date(buildDate).toISOString()).toBe(buildDate)
  expect(revision).toMatch(isClone ? /^[0-9a-f]{12}(-dirty)?$/ : /^unknown$/)
})
