// A typed client that a generator makes of the published documents, in Python: it reads every list, in both dialects.
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Client } from '../../commands/client/client.ts'
import { createHttpTransport } from '../../src/client/http-transport.ts'
import { cleanEnvironment, controller, run, type Served, serve } from '../world/binary.ts'
import { findFreePort } from '../world/free-port.ts'
import { hasPython, installPackage } from '../world/python.ts'

const GENERATOR = 'openapi-python-client'
const VERSION = '0.29.1'
const PASSWORD = 'correct horse battery'
const APIS = ['management', 'client'] as const

describe.skipIf(!(await hasPython()))('a client that is generated from the documents', () => {
  const work = mkdtempSync(join(tmpdir(), 'generated-'))
  const env = cleanEnvironment(work)
  const data = join(work, 'data')
  let served: Served
  let python = ''
  let token = ''

  async function succeed(command: string, args: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await run(command, args, env)
    expect(`${stderr}${code === 0 ? '' : `\nexit code ${code}`}`).not.toMatch(/exit code/)
    return stdout
  }

  /** Records of which most have nothing but what must be said, so that lists hold empty sets and absent values. */
  async function makeRecords(admin: Client): Promise<void> {
    const make = (path: string, body: object) => admin.call('POST', path, body)
    await make('/services', { name: 'bare', encryptionRequired: true })
    await make('/services', { name: 'web', encryptionRequired: true, roleAttributes: ['web'] })
    await make('/identities', { name: 'laptop', type: 'Device', isAdmin: false, enrollment: { ott: true } })
    await make('/edge-routers', { name: 'edge' })
    await make('/routers', { name: 'transit' })
    await make('/service-policies', { name: 'dial', type: 'Dial', semantic: 'AnyOf' })
    await make('/edge-router-policies', { name: 'routers', semantic: 'AnyOf' })
    await make('/service-edge-router-policies', { name: 'carriers', semantic: 'AnyOf' })
    await make('/posture-checks', { name: 'system', typeId: 'OS', operatingSystems: [{ type: 'Linux' }] })
    await make('/posture-checks', { name: 'program', typeId: 'PROCESS', process: { osType: 'Linux', path: '/bin/x' } })
    const issuer = 'https://issuer.example'
    const signer = { issuer, audience: 'a', enabled: true, jwksEndpoint: `${issuer}/keys` }
    await make('/external-jwt-signers', { name: 'signer', ...signer })
  }

  beforeAll(async () => {
    const bin = await installPackage(`${GENERATOR}==${VERSION}`)
    python = join(bin, 'python')
    writeFileSync(join(work, 'password'), `${PASSWORD}\n`)
    writeFileSync(join(work, 'generator.yaml'), 'post_hooks: []\n')
    const listen = `127.0.0.1:${await findFreePort()}`
    const admin = ['--admin-username', 'admin', '--admin-password-file', join(work, 'password')]
    expect((await controller(['init', '--data-dir', data, '--listen', listen, ...admin], env)).code).toBe(0)
    served = await serve(['--data-dir', data], env)
    const transport = createHttpTransport({
      url: served.url,
      rootPem: readFileSync(join(data, 'pki/root.crt'), 'utf8'),
    })
    const signIn = await new Client(transport).call('POST', '/authenticate?method=password', {
      username: 'admin',
      password: PASSWORD,
    })
    token = (signIn.data as { token: string }).token
    await makeRecords(new Client(transport, { token }))
    mkdirSync(join(work, 'generated'))
    for (const api of APIS) {
      const path = `/edge/${api}/v1/specs/edge-${api}/spec`
      const { text } = await transport.send({ method: 'GET', path })
      writeFileSync(join(work, `${api}.json`), text)
      const output = ['--output-path', join(work, 'generated', api), '--config', join(work, 'generator.yaml')]
      const generate = ['generate', '--path', join(work, `${api}.json`), '--meta', 'none', ...output]
      await succeed(join(bin, GENERATOR), generate)
    }
    await transport.close()
  }, 600_000)
  afterAll(() => served?.stop())

  it.each(APIS.flatMap((api) => (['net-session', 'zt-session'] as const).map((header) => [api, header] as const)))(
    'reads every list of the %s API with the header %s',
    async (api, header) => {
      const script = join(import.meta.dirname, 'read_lists.py')
      const base = `${served.url}/edge/${api}/v1`

      const stdout = await succeed(python, [script, join(work, 'generated'), api, base, header, token])

      const lists = JSON.parse(stdout) as Record<string, [number, number | string]>
      const failures = Object.entries(lists).filter(
        ([, [status, length]]) => status !== 200 || typeof length === 'string',
      )
      expect(failures).toEqual([])
      expect(lists.list_services?.[1]).toBe(2)
      expect(Object.keys(lists).length).toBeGreaterThan(api === 'management' ? 28 : 5)
    },
  )
})
