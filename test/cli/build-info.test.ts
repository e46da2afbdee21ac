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

it('builds of one revision say the same time, which a packager may state', async () => {
  // Outside of what TypeScript checks, as the rest of the build.
  const script = '../../.ci/build-info.mjs'
  const { readBuildInfo } = (await import(/* @vite-ignore */ script)) as {
    readBuildInfo(env?: NodeJS.ProcessEnv): { buildDate: string }
  }
  const stated = readBuildInfo({ SOURCE_DATE_EPOCH: '1767225600' })

  expect(stated.buildDate).toBe('2026-01-01T00:00:00.000Z')
  if (isClone) expect(readBuildInfo({})).toEqual(readBuildInfo({}))
})
