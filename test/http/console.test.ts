// The console: its files and nothing besides them, with headers that keep other pages and scripts out.
import { createHash } from 'node:crypto'
import { chmodSync, mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { buildContentSecurityPolicy } from '../../server/console/content-security-policy.ts'
import { copyOfTemplate, type TestController, testController, tlsTransport } from '../world/controller.ts'
import { type RawTarget, rawTarget, sendRaw } from '../world/raw-requests.ts'

const INDEX = `<!doctype html><title>console</title><link rel="stylesheet" href="a.css" onload="this.media='all'">
<script>start(1)</script><script src="app.js"></script>`

let world: TestController
let target: RawTarget

let umask: number

beforeAll(async () => {
  // A test before it in this process may have run a command, which makes files private.
  umask = process.umask(0o022)
  const parent = mkdtempSync(join(tmpdir(), 'console-'))
  const directory = join(parent, 'files')
  mkdirSync(join(directory, 'assets', '.hidden'), { recursive: true })
  mkdirSync(join(directory, 'docs'))
  writeFileSync(join(directory, 'index.html'), INDEX)
  writeFileSync(join(directory, 'app.js'), 'console.log(1)')
  writeFileSync(join(directory, 'assets', 'a b.svg'), '<svg/>')
  writeFileSync(join(directory, '.env'), 'secret')
  writeFileSync(join(directory, 'assets', '.hidden', 'x.js'), 'secret')
  writeFileSync(join(parent, 'outside.txt'), 'secret')
  symlinkSync(join(parent, 'outside.txt'), join(directory, 'link.txt'))
  symlinkSync(parent, join(directory, 'up'))
  symlinkSync(join(directory, '.env'), join(directory, 'env.txt'))
  symlinkSync(join(directory, 'app.js'), join(directory, 'same.js'))
  world = await testController({
    settings: {
      'console.directory': directory,
      'console.contentSecurityPolicy': "connect-src 'self' https://login.example.com",
    },
  })
  const { url, rootPem } = await world.listen()
  target = rawTarget(url, rootPem)
})
afterAll(async () => {
  process.umask(umask)
  await world.close()
})

async function open(path: string, headers = 'accept: text/html,*/*') {
  const head = `GET ${path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n${headers}\r\n\r\n`
  const { status, text, headers: responseHeaders } = await sendRaw(target, head)
  return { status, text, headers: responseHeaders }
}

describe('the console', () => {
  it('has its index at /zac/, to which /zac leads', async () => {
    const { status, text, headers } = await open('/zac/')
    const moved = await open('/zac')

    expect([status, text]).toEqual([200, INDEX])
    expect(headers['content-type']).toBe('text/html; charset=utf-8')
    expect([moved.status, moved.headers.location]).toEqual([308, '/zac/'])
  })

  it('responds to HEAD as to GET, without a body', async () => {
    for (const path of ['/zac/', '/zac/app.js', '/zac', '/zac/missing.js']) {
      const got = await open(path)
      const head = `HEAD ${path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\naccept: text/html,*/*\r\n\r\n`
      const { status, text, headers } = await sendRaw(target, head)

      expect([path, status, text]).toEqual([path, got.status, ''])
      expect(headers['content-type']).toBe(got.headers['content-type'])
      if (got.status === 200) expect(headers['content-length']).toBe(got.headers['content-length'])
    }
  })

  it('has its files, with their types', async () => {
    const script = await open('/zac/app.js')
    const image = await open('/zac/assets/a%20b.svg')

    expect([script.status, script.text]).toEqual([200, 'console.log(1)'])
    expect(script.headers['content-type']).toMatch(/javascript/)
    expect([image.status, image.headers['content-type']]).toEqual([200, 'image/svg+xml'])
    expect((await open('/zac/same.js')).status).toBe(200)
  })

  it('is not sent again while it has not changed', async () => {
    const { headers } = await open('/zac/app.js')
    const again = await open('/zac/app.js', `if-none-match: ${headers.etag}`)

    expect(headers['cache-control']).toBe('no-cache')
    expect([again.status, again.text]).toEqual([304, ''])
  })

  it('sends a whole file to who asks for a part of it', async () => {
    for (const range of ['bytes=9999999-', 'bytes=0-3', 'nonsense']) {
      const { status, text, headers } = await open('/zac/app.js', `range: ${range}`)

      expect([status, text], range).toEqual([200, 'console.log(1)'])
      expect(headers['accept-ranges']).not.toBe('bytes')
    }
  })

  it.each(['if-match: "x"', 'if-unmodified-since: Thu, 01 Jan 1970 00:00:01 GMT'])(
    'refuses a request on the condition %s',
    async (condition) => {
      const { status, text } = await open('/zac/app.js', condition)

      expect([status, JSON.parse(text).error.code]).toEqual([412, 'COULD_NOT_VALIDATE'])
    },
  )

  it('has its index for the pages of the application, and 404 for files that do not exist', async () => {
    expect((await open('/zac/services/some-id')).text).toBe(INDEX)
    expect((await open('/zac/missing.js')).status).toBe(404)
    expect((await open('/zac/services', 'accept: application/json')).status).toBe(404)
  })

  it.each([
    '/zac/../outside.txt',
    '/zac/..%2foutside.txt',
    '/zac/%2e%2e/outside.txt',
    '/zac/assets/../../outside.txt',
    '/zac/assets/..%2f..%2foutside.txt',
    '/zac/..%5coutside.txt',
    '/zac//etc/passwd',
    '/zac/%2fetc/passwd',
    '/zac/app.js%00.html',
    '/zac/.env',
    '/zac/%2eenv',
    '/zac/assets/.hidden/x.js',
    '/zac/link.txt',
    '/zac/up/outside.txt',
    '/zac/env.txt',
    '/zac/%ff',
    '/zac/assets',
    '/zac/assets/',
    '/zac/docs/',
  ])('shows nothing at %s', async (path) => {
    const { status, text } = await open(path, 'accept: */*')

    expect([400, 404]).toContain(status)
    expect(text).not.toContain('secret')
    expect(text).not.toContain('root:')
    expect(text).not.toContain('a b.svg')
  })

  it('cannot be framed, sniffed or scripted by others, and allows its own inline scripts by their hashes', async () => {
    const { headers } = await open('/zac/')
    const policy = new Map(
      headers['content-security-policy']
        ?.split('; ')
        .map((text) => [text.split(' ')[0] ?? '', text.split(' ').slice(1)]),
    )
    const hash = (script: string) => `'sha256-${createHash('sha256').update(script).digest('base64')}'`

    expect(policy.get('default-src')).toEqual(["'none'"])
    expect(policy.get('frame-ancestors')).toEqual(["'none'"])
    expect(policy.get('connect-src')).toEqual(["'self'", 'https://login.example.com'])
    expect(policy.get('script-src')).toEqual([
      "'self'",
      "'unsafe-eval'",
      hash('start(1)'),
      "'unsafe-hashes'",
      hash("this.media='all'"),
    ])
    expect(headers).toMatchObject({
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
      'referrer-policy': 'no-referrer',
      'cross-origin-opener-policy': 'same-origin',
    })
  })

  it('takes nothing but GET', async () => {
    const { status } = await sendRaw(
      target,
      'POST /zac/app.js HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 0\r\n\r\n',
    )

    expect([404, 405]).toContain(status)
  })
})

describe('a listener without the management API', () => {
  it('has no console', async () => {
    const other = await testController({
      settings: {
        listeners: [{ address: '127.0.0.1:0', apis: ['client'] }],
        'console.directory': world.controller.config['console.directory'],
      },
    })
    const { url, rootPem } = await other.listen()
    const { status } = await tlsTransport(url, rootPem).send({ method: 'GET', path: '/zac/' })
    await other.close()

    expect(status).toBe(404)
  })
})

describe('the headers of a console', () => {
  it('name the origin to hosts of images that the settings allow, and no path', async () => {
    const other = await testController({
      settings: {
        'console.directory': world.controller.config['console.directory'],
        'console.contentSecurityPolicy':
          "img-src 'self' data: blob: https://*.tile.openstreetmap.org; font-src 'self' data: https://fonts.gstatic.com",
      },
    })
    const { url, rootPem } = await other.listen()
    const { headers } = await tlsTransport(url, rootPem).send({ method: 'GET', path: '/zac/' })
    await other.close()

    expect(headers['referrer-policy']).toBe('strict-origin')
    expect(headers['content-security-policy']).toContain(
      "img-src 'self' data: blob: https://*.tile.openstreetmap.org; font-src 'self' data: https://fonts.gstatic.com;",
    )
  })
})

describe('scripts that an operator does not let compile functions', () => {
  it('keep their hashes', () => {
    const policy = buildContentSecurityPolicy({ 'script-src': ["'self'"] }, '<script>start(1)</script>')

    expect(policy).toMatch(/; script-src 'self' 'sha256-[^' ]+'; /)
  })
})

describe('the secrets of a controller', () => {
  it('are not served by a console whose directory is, contains or is inside the data directory, or leads there', async () => {
    const directory = copyOfTemplate()
    const parent = dirname(directory)
    const link = join(mkdtempSync(join(tmpdir(), 'link-')), 'console')
    symlinkSync(directory, link)
    mkdirSync(join(directory, 'backups'), { recursive: true })
    for (const path of [directory, parent, join(directory, 'backups')]) writeFileSync(join(path, 'index.html'), INDEX)

    for (const path of [directory, parent, join(directory, 'backups'), link]) {
      const opening = testController({ directory, settings: { 'console.directory': path } })

      await expect(opening, path).rejects.toThrow(/console\.directory.*overlaps/)
    }
  })

  it('are not served by a console whose directory is that of the backups', async () => {
    const backups = mkdtempSync(join(tmpdir(), 'backups-'))
    writeFileSync(join(backups, 'index.html'), INDEX, { mode: 0o644 })
    const settings = { 'backup.directory': backups, 'console.directory': backups }

    await expect(testController({ settings })).rejects.toThrow(/console\.directory.*overlaps/)
  })
})

describe('a file that other accounts may not read', () => {
  it('keeps a controller from starting if it is in the directory of the console, and is named', async () => {
    for (const [folder, file] of [
      [0o755, 0o600],
      [0o700, 0o644],
    ] as const) {
      const directory = mkdtempSync(join(tmpdir(), 'console-'))
      writeFileSync(join(directory, 'index.html'), INDEX, { mode: 0o644 })
      mkdirSync(join(directory, 'keys'))
      writeFileSync(join(directory, 'keys', 'root.key'), 'secret')
      chmodSync(join(directory, 'keys', 'root.key'), file)
      chmodSync(join(directory, 'keys'), folder)

      await expect(testController({ settings: { 'console.directory': directory } })).rejects.toThrow(/holds .*keys/)
    }
  })

  it('is not served if it comes later', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'console-'))
    writeFileSync(join(directory, 'index.html'), INDEX, { mode: 0o644 })
    const other = await testController({ settings: { 'console.directory': directory } })
    const { url, rootPem } = await other.listen()
    writeFileSync(join(directory, 'root.key'), 'secret', { mode: 0o600 })
    mkdirSync(join(directory, 'keys'))
    chmodSync(join(directory, 'keys'), 0o700)
    writeFileSync(join(directory, 'keys', 'root.key'), 'secret', { mode: 0o644 })
    const statuses = await Promise.all(
      ['/zac/', '/zac/root.key', '/zac/keys/root.key'].map(
        async (path) => (await tlsTransport(url, rootPem).send({ method: 'GET', path })).status,
      ),
    )
    await other.close()

    expect(statuses).toEqual([200, 404, 404])
  })
})

describe('a controller', () => {
  it('does not start with a directory that has no index', async () => {
    const settings = { 'console.directory': mkdtempSync(join(tmpdir(), 'empty-')) }

    await expect(testController({ settings })).rejects.toThrow(/console\.directory.*index\.html/)
  })

  it('has no console unless the settings name one', async () => {
    const other = await testController()
    const { status } = await other.send({ method: 'GET', path: '/zac/' })
    await other.close()

    expect(status).toBe(404)
  })
})
