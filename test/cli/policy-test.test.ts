// `controller policy test`: a file of expectations, for pipelines.
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, expect, it } from 'vitest'
import { cleanEnvironment } from '../world/binary.ts'
import { commandLine } from '../world/command-line.ts'
import { writeProfiles } from '../world/profiles.ts'
import { createStaffPolicy } from '../world/staff-policy.ts'
import { useController } from '../world/use-controller.ts'

const file = join(mkdtempSync(join(tmpdir(), 'policy-test-')), 'expectations.yaml')
const env = cleanEnvironment()
const world = useController()

beforeAll(async () => {
  const { url, rootPem } = await world.listen()
  writeProfiles(env, { test: { url, rootPem, token: await world.admin() } })
  await cli('identity', 'create', 'laptop', '--role', 'staff')
  await cli('identity', 'create', 'tablet')
  await cli('service', 'create', 'web', '--role', 'web')
  await createStaffPolicy(cli, 'use')
})

const cli = (...args: string[]) => commandLine(args, env)

it('the test passes if policies grant what is expected', async () => {
  const expectations = [
    '- { identity: laptop, service: web, dial: true, bind: false }',
    '- { identity: tablet, service: web, dial: false }',
  ]
  writeFileSync(file, expectations.join('\n'))

  const { code, stdout } = await cli('policy', 'test', file)

  expect(code).toBe(0)
  expect(stdout).toBe(
    '3 of 3 as expected\n\n  ✓ laptop can dial web\n  ✓ laptop cannot bind web\n  ✓ tablet cannot dial web\n',
  )
})

it('the test exits with 3 if policies grant more or less, and names the difference', async () => {
  writeFileSync(
    file,
    '[{"identity":"tablet","service":"web","dial":true},{"identity":"laptop","service":"web","dial":true}]',
  )

  const { code, stdout } = await cli('policy', 'test', file)
  const json = JSON.parse((await cli('policy', 'test', file, '-o', 'json')).stdout)

  expect(code).toBe(3)
  expect(stdout).toMatch(/^1 of 2 differ\n\n {2}✗ tablet can dial web\n/)
  expect(json).toMatchObject({ passed: false, findings: [{ expected: true, granted: false }, { passed: true }] })
})

it.each([
  ['text', 'hello', /must be a list of expectations/],
  ['an expectation of nothing', '[{"identity":"a","service":"b"}]', /must be a list of expectations/],
])('a file with %s is refused', async (_what, content, reason) => {
  writeFileSync(file, content)

  const { code, stderr } = await cli('policy', 'test', file)

  expect(code).toBe(2)
  expect(stderr).toMatch(reason)
})

it('a misspelt variable is named', async () => {
  const { code, stderr } = await commandLine(['identity', 'list', '-o', 'name'], { ...env, CONTROLLER_PROFIL: 'x' })

  expect(code).toBe(0)
  expect(stderr).toBe('CONTROLLER_PROFIL has no effect: did you mean CONTROLLER_PROFILE?\n')
})
