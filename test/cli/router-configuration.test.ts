// `controller edge-router create --config-file`: a configuration that a router reads as it is, and the token beside it.
import { existsSync, mkdtempSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { decodeJwt } from 'jose'
import { beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { cleanEnvironment } from '../world/binary.ts'
import { commandLine } from '../world/command-line.ts'
import { People } from '../world/people.ts'
import { writeProfiles } from '../world/profiles.ts'
import { useController } from '../world/use-controller.ts'

const env = cleanEnvironment()
const folder = mkdtempSync(join(tmpdir(), 'router-configuration-'))
const world = useController()
let people: People

beforeAll(async () => {
  people = await People.in(world)
  const { url, rootPem } = await world.listen()
  writeProfiles(env, { test: { url, rootPem, token: people.token } })
})

const create = (...words: string[]) => commandLine(['edge-router', 'create', ...words], env)
const read = (name: string) => parse(readFileSync(join(folder, name), 'utf8'))

describe('the configuration of a new router', () => {
  it('names the controller of the token, the files of the router, and the address of clients in its certificate', async () => {
    const file = join(folder, 'edge-1.yml')

    const { code, stderr } = await create('edge-1', '--config-file', file, '--advertise', 'router.example.com:3022')

    const token = decodeJwt(readFileSync(join(folder, 'edge-1.jwt'), 'utf8'))
    expect([code, stderr]).toEqual([
      0,
      expect.stringContaining(`ziti router enroll ${file} --jwt ${folder}/edge-1.jwt`),
    ])
    expect(token.em).toBe('erott')
    expect(read('edge-1.yml')).toEqual({
      v: 3,
      identity: {
        cert: join(folder, 'edge-1.cert'),
        server_cert: join(folder, 'edge-1.server.cert'),
        key: join(folder, 'edge-1.key'),
        ca: join(folder, 'edge-1.cas'),
      },
      ctrl: { endpoint: (token.ctrls as string[])[0], endpointsFile: join(folder, 'edge-1.endpoints.yml') },
      listeners: [{ binding: 'edge', address: 'tls:0.0.0.0:3022', options: { advertise: 'router.example.com:3022' } }],
      link: { dialers: [{ binding: 'transport' }] },
      edge: { heartbeatIntervalSeconds: 60, csr: { sans: { dns: ['router.example.com'] } } },
    })
    expect(statSync(join(folder, 'edge-1.jwt')).mode & 0o777).toBe(0o600)
  })

  it('has what the flags name: another address to bind, links from others, and services that it hosts', async () => {
    const file = join(folder, 'edge-2.yml')
    const addresses = [
      '--advertise',
      '127.0.0.1:3022',
      '--listen',
      '127.0.0.1:4022',
      '--link-advertise',
      '192.0.2.7:6000',
    ]

    const { code } = await create('edge-2', '--config-file', file, ...addresses, '--tunnel', 'host')

    const [router] = await people.manage('GET', `/edge-routers?filter=${encodeURIComponent('name = "edge-2"')}`)
    expect([code, router.isTunnelerEnabled]).toEqual([0, true])
    expect(read('edge-2.yml')).toMatchObject({
      listeners: [
        { address: 'tls:127.0.0.1:4022', options: { advertise: '127.0.0.1:3022' } },
        { binding: 'tunnel', options: { mode: 'host' } },
      ],
      link: { listeners: [{ binding: 'transport', bind: 'tls:0.0.0.0:6000', advertise: 'tls:192.0.2.7:6000' }] },
      edge: { csr: { sans: { ip: ['127.0.0.1', '192.0.2.7'] } } },
    })
  })

  it.each([
    ['without an address for clients', [], /missing flag: --advertise/],
    ['with an address without a port', ['--advertise', 'router.example.com'], /--advertise must be HOST:PORT/],
    ['with an IPv6 address, which routers cannot read', ['--advertise', '[::1]:3022'], /an IPv4 address/],
    [
      'with a tunneler that is none',
      ['--advertise', 'a:1', '--tunnel', 'host', '--no-is-tunneler-enabled'],
      /cannot be combined/,
    ],
  ])('is not written, nor is the router created, %s', async (what, flags, reason) => {
    const file = join(folder, 'refused.yml')

    const { code, stderr } = await create(what, '--config-file', file, ...flags)

    expect([code, stderr]).toEqual([2, expect.stringMatching(reason)])
    expect(existsSync(file)).toBe(false)
    expect(await people.manage('GET', `/edge-routers?filter=${encodeURIComponent(`name = "${what}"`)}`)).toEqual([])
  })

  it('does not replace another file, and leaves none if the router cannot be created', async () => {
    const existing = join(folder, 'existing.yml')
    writeFileSync(existing, 'mine: true\n')

    const refused = await create('edge-3', '--config-file', existing, '--advertise', 'a:1')
    const duplicate = await create('edge-1', '--config-file', join(folder, 'taken.yml'), '--advertise', 'a:1')

    expect([refused.code, duplicate.code]).toEqual([6, 6])
    expect(readFileSync(existing, 'utf8')).toBe('mine: true\n')
    expect([existsSync(join(folder, 'existing.jwt')), existsSync(join(folder, 'taken.yml'))]).toEqual([false, false])
  })
})
