// `controller doctor`: on a data directory, as for a running controller.
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
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
    expect(text.stdout).toContain('policies: service-policy nothing\n  the policy grants nothing: ')
    expect(text.stdout).toContain('Try: controller service-policy get nothing')
    expect(JSON.parse(json.stdout).diagnoses).toContainEqual(
      expect.objectContaining({ check: 'policies', subject: 'service-policy nothing' }),
    )
  })
})
