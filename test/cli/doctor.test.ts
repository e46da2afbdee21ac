// `controller doctor`: on a data directory, as for a running controller.
import { chmodSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { getDataPaths } from '../../src/settings/data-directory.ts'
import { cleanEnvironment } from '../world/binary.ts'
import { commandLine } from '../world/command-line.ts'
import { copyOfTemplate } from '../world/controller.ts'

const env = cleanEnvironment()
const directory = copyOfTemplate()
const offline = ['--offline', '--data-dir', directory]
const cli = (...args: string[]) => commandLine(args, env)

afterAll(() => rmSync(join(directory, '..'), { recursive: true, force: true }))

describe('controller doctor', () => {
  it('ends with 3 and names the command that helps, if something is wrong', async () => {
    await cli('service-policy', 'create', 'nothing', '--type', 'Dial', '--service-roles', '#none', ...offline)

    const text = await cli('doctor', ...offline)
    const json = await cli('doctor', '-o', 'json', ...offline)

    expect([text.code, json.code]).toEqual([3, 3])
    expect(text.stdout).toContain('✗ policies: service-policy nothing\n    the policy grants nothing: ')
    expect(text.stdout).toContain('Try: controller service-policy get nothing')
    expect(JSON.parse(json.stdout).diagnoses).toContainEqual(
      expect.objectContaining({ check: 'policies', subject: 'service-policy nothing' }),
    )
  })

  it('lists the checks that passed, and those that cannot decide offline', async () => {
    await cli('edge-router', 'create', 'north', ...offline)

    const text = await cli('doctor', ...offline)
    const json = await cli('doctor', '-o', 'json', ...offline)

    expect(text.stdout).toMatch(/^✓ clock: the clock is not behind /m)
    expect(text.stdout).toMatch(/^✓ files: /m)
    expect(text.stdout).toMatch(/^\? routers: /m)
    expect(JSON.parse(json.stdout).checks).toEqual(
      expect.arrayContaining([
        { name: 'clock', summary: expect.stringContaining('clock'), outcome: 'passed' },
        { name: 'policies', summary: expect.any(String), outcome: 'failed' },
        { name: 'routers', summary: expect.any(String), outcome: 'unknown' },
      ]),
    )
  })

  it('reports a file that other accounts may read and leaves it so; with --fix it makes the file private, and says so', async () => {
    const { tokenKey } = getDataPaths(directory)
    const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8)
    chmodSync(tokenKey, 0o644)

    const reported = await cli('doctor', ...offline)
    const modeAfterReport = modeOf(tokenKey)
    const fixed = await cli('doctor', '--fix', ...offline)
    const again = await cli('doctor', ...offline)

    expect(reported.stdout).toContain(`✗ files: ${tokenKey}\n    other accounts have rights to this file`)
    expect(reported.stdout).toContain(`controller doctor --offline --data-dir ${directory} --fix`)
    expect([reported.code, modeAfterReport]).toEqual([3, '644'])
    expect(fixed.stdout).toContain(`fixed files: ${tokenKey}\n    other accounts had rights to it, and have none now`)
    expect(fixed.stdout).toMatch(/^✓ files: /m)
    expect(modeOf(tokenKey)).toBe('600')
    expect(again.stdout).toMatch(/^✓ files: /m)
    expect(again.stdout).not.toContain(tokenKey)
  })

  it('is the only offline command that leaves such a file as it is: the others say that they close it', async () => {
    const { tokenKey } = getDataPaths(directory)
    chmodSync(tokenKey, 0o644)

    const listed = await cli('service', 'list', ...offline)

    expect(listed.code).toBe(0)
    expect(listed.stderr).toContain(`other accounts had rights to ${tokenKey}; it is private now`)
    expect(statSync(tokenKey).mode & 0o777).toBe(0o600)
  })
})
