// A controller with another root certificate than the pinned one: no password is sent to it before a fingerprint vouches.
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { Authority } from '../../src/pki/authority.ts'
import { encodeCertificateStore } from '../../src/pki/pkcs7.ts'
import { cleanEnvironment, controller } from '../world/binary.ts'
import { writeProfiles } from '../world/profiles.ts'

const folder = mkdtempSync(join(tmpdir(), 'changed-root-'))
const passwordFile = join(folder, 'password')
const now = Date.now()
const make = (name: string) => {
  Authority.make(join(folder, name), ['127.0.0.1'], now)
  return Authority.load(join(folder, name))
}
const knownRoot = make('known')
const attacker = make('attacker')

let server: Server
let url: string
/** The bodies that the attacker was sent. */
const bodies: string[] = []

beforeAll(async () => {
  writeFileSync(passwordFile, 'correct horse battery\n')
  const tls = { key: attacker.serverKeyPem, cert: attacker.serverChainPem }
  server = createServer(tls, (request, response) => {
    let body = ''
    request.on('data', (chunk) => {
      body += chunk
    })
    request.on('end', () => {
      if (body !== '') bodies.push(body)
      if (request.url?.includes('cacerts')) response.end(encodeCertificateStore(attacker.bundle))
      else response.writeHead(401, { 'content-type': 'application/json' }).end('{}')
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  url = `https://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}`
})
afterAll(() => server.close())
beforeEach(() => {
  bodies.length = 0
})

const rootPem = readFileSync(join(folder, 'known', 'root.crt'), 'utf8')

function login(env: NodeJS.ProcessEnv, ...flags: string[]) {
  return controller(['login', url, '--username', 'admin', '--password-file', passwordFile, ...flags], env)
}

describe('a login to a controller whose root is not the pinned one', () => {
  it.each([[[]], [['--yes']], [['--yes', '--profile', 'another name']]])(
    'sends nothing with the flags %j, and says what would vouch for it',
    async (flags) => {
      const env = cleanEnvironment()
      writeProfiles(env, { pinned: { url, rootPem } })

      const { code, stderr } = await login(env, ...flags)

      expect(bodies).toEqual([])
      expect(code).toBe(1)
      expect(stderr).toContain(`${attacker.rootFingerprint}, expected ${knownRoot.rootFingerprint}`)
      expect(stderr).toMatch(/--fingerprint/)
    },
  )

  it('goes on with the fingerprint of the new root, and not with another one', async () => {
    const env = cleanEnvironment()
    writeProfiles(env, { pinned: { url, rootPem } })

    const wrong = await login(env, '--yes', '--fingerprint', knownRoot.rootFingerprint)
    const sentToWrong = bodies.length
    await login(env, '--fingerprint', attacker.rootFingerprint)

    expect([wrong.code, sentToWrong]).toEqual([1, 0])
    expect(bodies).toHaveLength(1)
  })

  it('still takes --yes for a controller that no profile knows', async () => {
    await login(cleanEnvironment(), '--yes')

    expect(bodies).toHaveLength(1)
  })
})
