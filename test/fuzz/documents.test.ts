// Requests that schemathesis generates from the OpenAPI documents; it validates the responses against them.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { renderOpenApiDocument } from '../../server/openapi/openapi.ts'
import { operations } from '../../server/operations/operations.ts'
import { toCollectionPath } from '../../src/definitions/model/links.ts'
import { permissivePolicy } from '../../src/definitions/resources/auth-policies.ts'
import type { AnyResource } from '../../src/definitions/resources/define.ts'
import { resources } from '../../src/definitions/resources/index.ts'
import { run } from '../world/binary.ts'
import { CLIENT, MANAGEMENT, type TestController, testController } from '../world/controller.ts'
import { exampleBody } from '../world/examples.ts'
import { takeContradictions } from '../world/faults.ts'
import { type Management, managementOf } from '../world/management.ts'
import { hasPython, installPackage } from '../world/python.ts'

const PACKAGE = 'schemathesis==4.32.5'
// How many requests of each operation the fuzzer makes up, besides those that cover the schemas.
const EXAMPLES = process.env.FUZZ_EXAMPLES ?? '20'
const CHECKS = [
  'not_a_server_error',
  'status_code_conformance',
  'content_type_conformance',
  'response_headers_conformance',
  'response_schema_conformance',
]
const RECORDS = 5
let sequence = 0

const isPossible = await hasPython()

describe.skipIf(!isPossible)('a fuzzer with the document of', () => {
  const work = mkdtempSync(join(tmpdir(), 'fuzz-'))
  const file = (name: string) => join(work, name)
  let bin = ''
  let world: TestController
  let manage: Management
  let url = ''
  let ticking: NodeJS.Timeout | undefined

  beforeAll(async () => {
    bin = await installPackage(PACKAGE)
    world = await testController()
    manage = await managementOf(world)
    const listening = await world.listen()
    url = listening.url
    writeFileSync(file('root.pem'), listening.rootPem)
    // Rates are limited by the controller's clock.
    ticking = setInterval(() => world.clock.advance(100), 100)
  })
  afterAll(async () => {
    clearInterval(ticking)
    await world?.close()
    rmSync(work, { recursive: true, force: true })
  })

  /** Ids of some records of each collection, by its plural name. */
  async function records(): Promise<Record<string, readonly string[]>> {
    const failures: Record<string, readonly string[]> = {}
    for (const resource of resources as readonly AnyResource[]) {
      const ids: string[] = []
      for (let n = 0; resource.verbs.includes('create') && n < RECORDS; n++) {
        const body = await exampleBody(world, resource, `${resource.name} ${++sequence} to be fuzzed`)
        const { status, body: response } = await manage.call('POST', toCollectionPath(resource), body)
        if (status === 201) ids.push(response.data.id)
      }
      failures[resource.plural] = ids
    }
    return failures
  }

  it.each([
    ['management', MANAGEMENT],
    ['client', CLIENT],
  ] as const)('the %s API finds no fault of the server and no contradiction', async (api, base) => {
    writeFileSync(file(`${api}.json`), renderOpenApiDocument(api, operations))
    // An administrator that no request can disable, delete or sign out.
    const { id, token } = await world.signIn({ isAdmin: true, name: `the fuzzer of the ${api} API` })
    const authPolicyId = await manage.make('auth-policies', { name: `the fuzzer of ${api}`, ...permissivePolicy })
    await manage.change('PATCH', `/identities/${id}`, { authPolicyId })
    const session = await world.send({ method: 'GET', path: `${MANAGEMENT}/current-api-session`, token })
    const env = {
      ...process.env,
      SCHEMATHESIS_HOOKS: join(import.meta.dirname, 'hooks.py'),
      FUZZ_RECORDS: JSON.stringify(await records()),
      FUZZ_PROTECTED: JSON.stringify([id, authPolicyId, session.body.data.id]),
    }
    const args = [
      ...['run', file(`${api}.json`), '--url', `${url}${base}`, '--tls-verify', file('root.pem')],
      ...['--header', `net-session: ${token}`, '--checks', CHECKS.join(','), '--phases', 'examples,coverage,fuzzing'],
      ...['--max-examples', EXAMPLES, '--seed', '1', '--exclude-operation-id', 'deleteCurrentApiSession'],
      // Its response does not end.
      ...['--exclude-operation-id', 'watchEvents'],
      ...['--suppress-health-check', 'all', '--continue-on-failure', '--no-shrink', '--workers', '1'],
      ...['--generation-database', 'none', '--warnings', 'off', '--no-color'],
      ...(process.env.FUZZ_ARGUMENTS ?? '').split(' ').filter(Boolean),
    ]

    const { code, stdout, stderr } = await run(join(bin, 'schemathesis'), args, env, { cwd: work })

    process.stdout.write(code === 0 ? (stdout.split('SUMMARY').at(-1) ?? '') : `${stdout}\n${stderr}\n`)
    expect([...new Set(takeContradictions())]).toEqual([])
    expect(code).toBe(0)
    // It was an administrator to the end.
    const last = await world.send({ method: 'GET', path: `${MANAGEMENT}/summary`, token })
    expect(last.status).toBe(200)
  })
})
