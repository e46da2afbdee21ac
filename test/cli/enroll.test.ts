// `controller enroll`: from a token to a credential, and what is left behind if that fails.
import { spawn, spawnSync } from 'node:child_process'
import { createPrivateKey, generateKeyPairSync, X509Certificate } from 'node:crypto'
import {
  chmodSync,
  chownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import type { RequestListener } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { decodeJwt, type JWTPayload, SignJWT } from 'jose'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { encodeCertificateStore } from '../../src/pki/pkcs7.ts'
import { BINARY, cleanEnvironment, controller, type Finished, run } from '../world/binary.ts'
import { commandLine } from '../world/command-line.ts'
import {
  enrollmentToken,
  type ReachableController,
  reachableController,
  readIdentityFileText,
  signInByFile,
  type Token,
  writeToken,
} from '../world/enrollments.ts'
import { lacks } from '../world/machine.ts'
import { CTRL_C, ENTER, onTerminal, plainText } from '../world/terminal.ts'

let network: ReachableController
let env: NodeJS.ProcessEnv

beforeAll(async () => {
  network = await reachableController()
  env = cleanEnvironment()
})
afterAll(() => network?.stop())

const enroll = (...args: string[]) => commandLine(['enroll', ...args], env)

/** The identity file beside a token. */
const identityFileOf = ({ folder }: Pick<Token, 'folder'>) => join(folder, 'laptop.json')

const signIn = (path: string) => signInByFile(network, path)

function expectRefused({ code, stdout, stderr }: Finished, exitCode: number, reason: RegExp) {
  expect(stderr).toMatch(reason)
  expect(code).toBe(exitCode)
  expect(stdout).toBe('')
}

describe('a token of the method ott', () => {
  it('becomes an identity file as SDKs read it, with which its identity signs in', async () => {
    const token = await enrollmentToken(network.people)

    const { code, stdout, stderr } = await enroll(token.file)

    const path = identityFileOf(token)
    const { ztAPI, id } = readIdentityFileText(path)
    expect(stderr).toBe('')
    expect(code).toBe(0)
    expect(stdout).toContain(`Next: controller login --identity ${path}`)
    expect(ztAPI).toBe(`${network.url}/edge/client/v1`)
    expect([id.key, id.cert, id.ca].every((value) => value.startsWith('pem:-----BEGIN '))).toBe(true)
    expect(id.ca).toContain(network.rootPem)
    expect(createPrivateKey(id.key.slice(4)).asymmetricKeyDetails?.namedCurve).toBe('prime256v1')
    expect(new X509Certificate(id.cert.slice(4)).subject).toMatch(new RegExp(`CN=${token.identityId}$`))
    expect((await signIn(path)).body.data.identity.id).toBe(token.identityId)
  })

  it('leaves one file, which no other account can read', async () => {
    const token = await enrollmentToken(network.people)

    await enroll(token.file)

    expect(readdirSync(token.folder).sort()).toEqual(['laptop.json', 'laptop.jwt'])
    expect(statSync(identityFileOf(token)).mode & 0o777).toBe(0o600)
  })

  it('is described for programs', async () => {
    const token = await enrollmentToken(network.people)

    const { stdout } = await enroll(token.file, '-o', 'json')

    const path = identityFileOf(token)
    const certificate = new X509Certificate(readIdentityFileText(path).id.cert.slice(4))
    expect(JSON.parse(stdout)).toEqual({
      identityFile: path,
      url: network.url,
      method: 'ott',
      identityId: token.identityId,
      fingerprint: certificate.fingerprint.replaceAll(':', '').toLowerCase(),
      expiresAt: new Date(certificate.validTo).toISOString(),
    })
  })

  it('is read from stdin, if a flag names the identity file', async () => {
    const token = await enrollmentToken(network.people)
    const out = join(token.folder, 'other.json')

    const unnamed = await controller(['enroll', '-'], env, token.jwt)
    const named = await controller(['enroll', '-', '--out', out], env, token.jwt)

    expectRefused(unnamed, 2, /missing flag: --out/)
    expect(named.code).toBe(0)
    expect((await signIn(out)).status).toBe(200)
  })

  it('needs no profile, and creates none', async () => {
    const other = cleanEnvironment()
    const token = await enrollmentToken(network.people)

    await commandLine(['enroll', token.file], other)

    expect((await commandLine(['profile', 'list', '-o', 'name'], other)).stdout).toBe('')
  })
})

describe('an identity file that exists', () => {
  it('is not replaced, and the token is not used', async () => {
    const token = await enrollmentToken(network.people)
    writeFileSync(identityFileOf(token), 'precious')

    expectRefused(await enroll(token.file), 6, /exists already: nothing was changed\nTry: .*--force/)

    expect(readFileSync(identityFileOf(token), 'utf8')).toBe('precious')
    expect((await enroll(token.file, '--force')).code).toBe(0)
    expect((await signIn(identityFileOf(token))).status).toBe(200)
  })

  it('becomes private, and is of this account, if it is replaced', async () => {
    const token = await enrollmentToken(network.people)
    const path = identityFileOf(token)
    writeFileSync(path, 'planted', { mode: 0o644 })
    if (process.geteuid?.() === 0) chownSync(path, 12_345, 12_345)

    expect((await enroll(token.file, '--force')).code).toBe(0)

    const { uid, mode } = statSync(path)
    expect([uid, mode & 0o777]).toEqual([process.geteuid?.(), 0o600])
  })

  it('is replaced on a terminal after a confirmation only', async () => {
    const token = await enrollmentToken(network.people)
    writeFileSync(identityFileOf(token), 'precious')

    // Wide enough for the question and the path, in whatever folder temporary files are.
    const columns = 300
    const declined = await onTerminal(['enroll', token.file], env, { columns, inputs: [['Replace it', `n${ENTER}`]] })
    const untouched = readFileSync(identityFileOf(token), 'utf8')
    const confirmed = await onTerminal(['enroll', token.file], env, { columns, inputs: [['Replace it', `y${ENTER}`]] })

    expect([declined.code, untouched]).toEqual([6, 'precious'])
    expect(confirmed.code).toBe(0)
    expect((await signIn(identityFileOf(token))).status).toBe(200)
  })

  it('is the file that a symbolic link leads to, and the link stays', async () => {
    const token = await enrollmentToken(network.people)
    const link = identityFileOf(token)
    writeFileSync(join(token.folder, 'elsewhere.json'), '{}')
    symlinkSync('elsewhere.json', link)

    await enroll(token.file, '--force')

    expect(readdirSync(token.folder).sort()).toEqual(['elsewhere.json', 'laptop.json', 'laptop.jwt'])
    expect((await signIn(join(token.folder, 'elsewhere.json'))).status).toBe(200)
  })
})

describe('a token that cannot be used', () => {
  it('is one that was used already', async () => {
    const token = await enrollmentToken(network.people)
    await enroll(token.file)
    const before = readFileSync(identityFileOf(token), 'utf8')

    const again = await enroll(token.file, '--force')

    expectRefused(
      again,
      2,
      /the token in .*laptop\.jwt was used already, .*\nTry: ask an administrator for a new token/,
    )
    expect(readFileSync(identityFileOf(token), 'utf8')).toBe(before)
  })

  it('is one that expired', async () => {
    const expiresAt = new Date(Date.now() - 60_000)
    const token = await enrollmentToken(network.people)
    const claims = decodeJwt(token.jwt)
    await network.world.system.write(async ({ db }) => {
      await db
        .updateTable('enrollments')
        .set({ expiresAt: expiresAt.getTime() })
        .where('token', '=', claims.jti ?? '')
        .execute()
    })
    const expired = writeToken(await signAsController({ ...claims, exp: Math.floor(expiresAt.getTime() / 1000) }))

    expectRefused(await enroll(expired.file), 2, /laptop\.jwt expired 1 minute ago, at \d{4}-/)
  })

  it('is one that an administrator replaced by another', async () => {
    const token = await enrollmentToken(network.people)
    const { enrollment } = await network.people.manage('GET', `/identities/${token.identityId}`)
    const expiresAt = new Date(network.world.clock.now() + 3_600_000).toISOString()
    await network.people.manage('POST', `/enrollments/${enrollment.ott.id}/refresh`, { expiresAt })

    expectRefused(await enroll(token.file), 2, /was used already, or was replaced by a newer one/)
  })

  it.each<[what: string, claims: JWTPayload, reason: RegExp]>([
    ['of a network', { em: 'network' }, /it identifies a network/],
    [
      'of an edge router',
      { em: 'erott' },
      /it enrolls an edge router.*\nTry: on the machine of the router: ziti router enroll ROUTER\.yml --jwt /,
    ],
    ['of a router', { em: 'trott' }, /it enrolls a router/],
    ['of an unknown method', { em: 'magic' }, /the method magic is unknown/],
    ['without a method', {}, /does not contain an enrollment token/],
    ['with an address that is not of HTTPS', { em: 'ott', iss: 'http://127.0.0.1' }, /does not contain an enrollment/],
    ['without a secret', { em: 'ott', jti: undefined }, /does not contain an enrollment token/],
  ])('is one %s', async (_what, claims, reason) => {
    const { file } = writeToken(await signAsController({ iss: network.url, sub: 'id', jti: 'secret', ...claims }))

    expectRefused(await enroll(file), 2, reason)
  })

  it.each([
    ['nothing', ''],
    ['text', 'hello'],
    ['a JSON object', '{"em":"ott"}'],
    ['three words with dots', 'a.b.c'],
  ])('is %s', async (_what, text) => {
    expectRefused(await enroll(writeToken(text).file), 2, /does not contain an enrollment token/)
  })

  it.each([1e300, 'tomorrow'])('is one whose end, %s, is not a time', async (exp) => {
    const token = await enrollmentToken(network.people)
    const header = Buffer.from('{"alg":"RS256"}').toString('base64url')
    const claims = Buffer.from(JSON.stringify({ ...decodeJwt(token.jwt), exp })).toString('base64url')

    expectRefused(await enroll(writeToken(`${header}.${claims}.x`).file), 2, /does not contain an enrollment token/)
  })

  it('is a file that does not exist', async () => {
    expectRefused(await enroll('/nowhere/laptop.jwt'), 2, /\/nowhere\/laptop.jwt cannot be read/)
  })
})

describe('the controller is verified before the token is sent', () => {
  it.each<[what: string, alg: string, key: () => Parameters<SignJWT['sign']>[0]]>([
    ['signed by another key', 'RS256', () => generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey],
    ['signed by a key of another kind', 'ES256', () => generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey],
    ['signed with the public key as a secret', 'HS256', () => new X509Certificate(serverPem()).raw],
  ])('a token %s is not', async (_what, alg, key) => {
    const token = await enrollmentToken(network.people)
    const forged = await new SignJWT(decodeJwt(token.jwt)).setProtectedHeader({ alg }).sign(key())

    const refused = await enroll(writeToken(forged).file)

    expectRefused(refused, 1, /was not issued by the controller at https:.*\nTry: .*may be of another network/)
    expect((await enroll(token.file)).code).toBe(0)
  })

  it('a token without a signature is not', async () => {
    const token = await enrollmentToken(network.people)
    const [, claims] = token.jwt.split('.')
    const header = Buffer.from('{"alg":"none"}').toString('base64url')

    expectRefused(await enroll(writeToken(`${header}.${claims}.`).file), 1, /was not issued by the controller/)
  })

  it('a token is not, if the controller has its key but is reached under another name', async () => {
    const token = await enrollmentToken(network.people)
    const iss = network.url.replace('127.0.0.1', '127.0.0.2')
    const requests: string[] = []
    const imposter = await serveInstead(({ url: path = '' }, response) => {
      requests.push(path)
      response.end(encodeCertificateStore(network.world.controller.authority.bundle))
    }, '127.0.0.2')
    const moved = await signAsController({ ...decodeJwt(token.jwt), iss: imposter.url })

    const refused = await enroll(writeToken(moved).file)
    await imposter.stop()

    expectRefused(refused, 1, /the certificate of the controller at https:\/\/127\.0\.0\.2:\d+ is for another name/)
    expect(iss).not.toBe(network.url)
    expect(requests).toEqual(['/.well-known/est/cacerts'])
  })

  it.each<[what: string, respond: RequestListener]>([
    ['responds with something else', (_request, response) => response.end('hello')],
    ['responds with an error', (_request, response) => response.writeHead(500).end()],
    ['offers no authority', (_request, response) => response.end(encodeCertificateStore([]))],
  ])('a token is not, if the server %s', async (_what, respond) => {
    const server = await serveInstead(respond)
    const { file } = writeToken(await signAsController({ em: 'ott', iss: server.url, sub: 'id', jti: 'secret' }))

    const refused = await enroll(file)
    await server.stop()

    expectRefused(refused, 1, /does not offer a root certificate/)
  })

  it('a controller that cannot be reached can be tried again', async () => {
    const iss = 'https://127.0.0.1:9'
    const { file } = writeToken(await signAsController({ em: 'ott', iss, sub: 'id', jti: 'secret' }))

    expectRefused(await enroll(file), 8, /cannot be reached: connection refused\nTry: check the network/)
  })
})

describe('what cannot be written', () => {
  it('is noticed before the token is used: a directory that does not exist', async () => {
    const token = await enrollmentToken(network.people)

    expectRefused(await enroll(token.file, '--out', '/nowhere/laptop.json'), 2, /its directory does not exist/)

    expect((await enroll(token.file)).code).toBe(0)
  })

  it('is noticed before the token is used: a path of a directory', async () => {
    const token = await enrollmentToken(network.people)
    mkdirSync(identityFileOf(token))

    expectRefused(await enroll(token.file, '--force'), 2, /is not a regular file/)

    expect((await enroll(token.file, '--out', join(token.folder, 'other.json'))).code).toBe(0)
  })

  it.skipIf(lacks('an account other than root', process.getuid?.() !== 0))(
    'is noticed before the token is used: a directory without permission',
    async () => {
      const token = await enrollmentToken(network.people)
      chmodSync(token.folder, 0o500)

      expectRefused(await enroll(token.file), 1, /cannot be written: permission denied/)

      chmodSync(token.folder, 0o700)
      expect((await enroll(token.file)).code).toBe(0)
    },
  )

  it.skipIf(lacks('prlimit', spawnSync('prlimit', ['--version']).status === 0))(
    'is noticed before the token is used: a full disk',
    async () => {
      const token = await enrollmentToken(network.people)
      const words = ['--fsize=1000:1000', process.execPath, BINARY, 'enroll', token.file]

      expectRefused(await run('prlimit', words, env), 1, /laptop\.json cannot be written/)

      expect(readdirSync(token.folder)).toEqual(['laptop.jwt'])
      expect((await enroll(token.file)).code).toBe(0)
    },
  )
})

describe('an enrollment that does not end well', () => {
  it.each<[what: string, cert: () => unknown]>([
    ['no certificate', () => undefined],
    ['text that is not a certificate', () => 'hello'],
    ['a certificate of another key', serverPem],
  ])('leaves nothing behind: a response with %s', async (_what, cert) => {
    const server = await serveInstead(
      afterTrust((_request, response) => {
        response.setHeader('content-type', 'application/json')
        response.end(JSON.stringify({ data: { cert: cert() }, meta: {} }))
      }),
    )
    const { file, folder } = writeToken(
      await signAsController({ em: 'ott', iss: server.url, sub: 'id', jti: 'secret' }),
    )

    const refused = await enroll(file)
    await server.stop()

    expectRefused(refused, 1, /does not contain a certificate for the new key/)
    expect(readdirSync(folder)).toEqual(['laptop.jwt'])
  })

  it('leaves nothing behind: a connection that ends before the response', async () => {
    const server = await serveInstead(afterTrust((request) => request.socket.destroy()))
    const { file, folder } = writeToken(
      await signAsController({ em: 'ott', iss: server.url, sub: 'id', jti: 'secret' }),
    )

    const refused = await enroll(file)
    await server.stop()

    expectRefused(refused, 8, /cannot be reached/)
    expect(readdirSync(folder)).toEqual(['laptop.jwt'])
  })

  it('warns at the first Ctrl-C, and leaves nothing behind after the second', async () => {
    const server = await serveInstead(afterTrust(() => {}))
    const { file, folder } = writeToken(
      await signAsController({ em: 'ott', iss: server.url, sub: 'id', jti: 'secret' }),
    )

    const { child, ended, hasRequest } = startEnrollment(file, server)
    await hasRequest
    child.kill('SIGINT')
    await expect.poll(() => child.errors()).toMatch(/press Ctrl-C again to give up/)
    const during = readdirSync(folder)
    child.kill('SIGINT')
    const code = await ended
    await server.stop()

    expect(during).toHaveLength(2)
    expect(code).toBe(130)
    expect(readdirSync(folder)).toEqual(['laptop.jwt'])
  })

  it('never leaves a part of an identity file: a process that is killed', async () => {
    const server = await serveInstead(afterTrust(() => {}))
    const { file, folder } = writeToken(
      await signAsController({ em: 'ott', iss: server.url, sub: 'id', jti: 'secret' }),
    )

    const { child, ended, hasRequest } = startEnrollment(file, server)
    await hasRequest
    child.kill('SIGKILL')
    await ended
    await server.stop()

    expect(readdirSync(folder)).not.toContain('laptop.json')
  })
})

describe('a token of the method updb', () => {
  it('sets a password that is typed twice, and the login that follows does not ask for a fingerprint', async () => {
    const token = await enrollmentToken(network.people, { updb: 'annabel' })
    const person = cleanEnvironment()
    const password = 'correct horse battery'

    const enrolled = await onTerminal(['enroll', token.file], person, {
      inputs: [
        ['New password', `abc${ENTER}`],
        ['must have 5 to 100 characters[\\s\\S]*New password', `${password}${ENTER}`],
        ['Repeat', `${password}!${ENTER}`],
        ['differ[\\s\\S]*New password', `${password}${ENTER}`],
        ['Repeat', `${password}${ENTER}`],
      ],
    })
    const signedIn = await onTerminal(['login', network.url, '--username', 'annabel'], person, {
      inputs: [['Password', `${password}${ENTER}`]],
    })

    expect(plainText(enrolled.screen)).toMatch(
      /Enrolled annabel at https:.*\n\nNext: controller login https:\S+ --username annabel/,
    )
    expect(enrolled.screen).not.toContain(password)
    expect([enrolled.code, signedIn.code]).toEqual([0, 0])
    expect(readdirSync(token.folder)).toEqual(['laptop.jwt'])
  })

  it('asks again, if the auth policy rejects the password', async () => {
    const authPolicyId = await network.people.policy({ updb: { requireNumberChar: true } })
    const token = await enrollmentToken(network.people, { updb: 'bernard' }, { authPolicyId })

    const { screen, code } = await onTerminal(['enroll', token.file], cleanEnvironment(), {
      inputs: [
        ['New password', `letters${ENTER}`],
        ['Repeat', `letters${ENTER}`],
        ['must hold a digit[\\s\\S]*New password', `letters1${ENTER}`],
        ['Repeat', `letters1${ENTER}`],
      ],
    })

    expect(plainText(screen)).toMatch(/Enrolled bernard/)
    expect(code).toBe(0)
  })

  it('can be interrupted at its prompt, and used afterwards', async () => {
    const token = await enrollmentToken(network.people, { updb: 'charlotte' })
    const file = join(token.folder, 'password')
    writeFileSync(file, 'correct horse battery\n')

    const interrupted = await onTerminal(['enroll', token.file], env, { inputs: [['New password', CTRL_C]] })
    const enrolled = await enroll(token.file, '--password-file', file, '-o', 'json')

    expect(interrupted.code).toBe(130)
    expect(JSON.parse(enrolled.stdout)).toMatchObject({ method: 'updb', username: 'charlotte' })
  })

  it('needs a file with the password, if there is no terminal', async () => {
    const token = await enrollmentToken(network.people, { updb: 'dorothy' })

    expectRefused(await enroll(token.file), 2, /without a terminal\nTry: --password-file/)
  })

  it('is refused before a password is asked for, if it was used already', async () => {
    const token = await enrollmentToken(network.people, { updb: 'gertrude' })
    const file = join(token.folder, 'password')
    writeFileSync(file, 'correct horse battery\n')
    await enroll(token.file, '--password-file', file)

    expectRefused(await enroll(token.file), 2, /was used already/)
  })

  it('does not touch the profile of another login at this controller', async () => {
    const other = cleanEnvironment()
    const token = await enrollmentToken(network.people, { updb: 'edward' })
    const file = join(token.folder, 'password')
    writeFileSync(file, 'correct horse battery\n')
    const person = await network.people.person()
    await commandLine(['login', network.url, '-u', person.username, '--password-file', file, '--yes'], other)

    await commandLine(['enroll', token.file, '--password-file', file], other)

    const { stdout } = await commandLine(['profile', 'list', '-o', 'json'], other)
    expect(JSON.parse(stdout).items).toMatchObject([{ username: person.username, current: true }])
  })
})

describe('flags that do not fit the token', () => {
  it.each<[enrollment: Parameters<typeof enrollmentToken>[1], args: string[]]>([
    [{ ott: true }, ['--cert', 'a', '--key', 'b']],
    [{ ott: true }, ['--pkcs12', 'a']],
    [{ ott: true }, ['--name', 'a']],
    [{ ott: true }, ['--password-file', 'a']],
    [{ updb: 'frederick' }, ['--out', 'a']],
  ])('are refused: %j %j', async (enrollment, args) => {
    const token = await enrollmentToken(network.people, enrollment)

    expectRefused(await enroll(token.file, ...args), 2, /--\S+ has no meaning for .*, whose method is /)
  })
})

// ---- a server with the certificate of the controller ---------------------------------------------------------------------

function serverPem(): string {
  return network.world.controller.authority.serverChainPem
}

function signAsController(claims: JWTPayload): Promise<string> {
  const { key } = network.world.controller.authority.server
  return new SignJWT(claims).setProtectedHeader({ alg: 'RS256' }).sign(key)
}

interface SubstituteServer {
  readonly url: string
  /** How many requests other than that for the authorities arrived. */
  readonly requestCount: () => number
  stop(): Promise<void>
}

let requestCount = 0

/** Serves the authorities, and passes every other request on. */
function afterTrust(respond: RequestListener): RequestListener {
  return (request, response) => {
    if (request.url === '/.well-known/est/cacerts') {
      response.end(encodeCertificateStore(network.world.controller.authority.bundle))
      return
    }
    requestCount++
    respond(request, response)
  }
}

async function serveInstead(respond: RequestListener, host = '127.0.0.1'): Promise<SubstituteServer> {
  requestCount = 0
  const { serverChainPem, serverKeyPem } = network.world.controller.authority
  const server = createServer({ cert: serverChainPem, key: serverKeyPem }, respond)
  await new Promise<void>((resolve) => server.listen(0, host, resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `https://${host}:${port}`,
    requestCount: () => requestCount,
    stop() {
      server.closeAllConnections()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
}

function startEnrollment(file: string, server: SubstituteServer) {
  const child = spawn(process.execPath, [BINARY, 'enroll', file], { env, stdio: ['ignore', 'ignore', 'pipe'] })
  let errors = ''
  child.stderr.on('data', (chunk: Buffer) => {
    errors += chunk.toString()
  })
  const ended = new Promise<number | null>((resolve) => child.on('close', resolve))
  const hasRequest = expect.poll(() => server.requestCount(), { timeout: 20_000 }).toBe(1)
  return { child: Object.assign(child, { errors: () => errors }), ended, hasRequest }
}
