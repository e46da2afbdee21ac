// The TLS side of the server: forward secrecy, authenticated encryption, and no protocol that nothing serves.
import type { ConnectionOptions } from 'node:tls'
import { beforeAll, describe, expect, it } from 'vitest'
import { openTls, type RawTarget, rawTarget } from '../world/raw-requests.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
let target: RawTarget

beforeAll(async () => {
  const { url, rootPem } = await world.listen()
  target = rawTarget(url, rootPem)
})

/** The result of a handshake; undefined if the server refuses it. */
async function handshake(options: ConnectionOptions) {
  try {
    const socket = await openTls(target, options)
    const agreed = { cipher: socket.getCipher().name, version: socket.getProtocol(), protocol: socket.alpnProtocol }
    socket.destroy()
    return agreed
  } catch {
    return undefined
  }
}

const TLS_1_2: ConnectionOptions = { maxVersion: 'TLSv1.2' }
// The client itself would otherwise refuse to offer weak suites.
const weak = (ciphers: string): ConnectionOptions => ({ ...TLS_1_2, ciphers: `${ciphers}:@SECLEVEL=0` })

describe('TLS 1.2', () => {
  it.each([
    ['CBC with SHA-1', 'ECDHE-ECDSA-AES128-SHA:ECDHE-RSA-AES128-SHA:ECDHE-ECDSA-AES256-SHA:ECDHE-RSA-AES256-SHA'],
    [
      'CBC with SHA-2',
      'ECDHE-ECDSA-AES128-SHA256:ECDHE-RSA-AES128-SHA256:ECDHE-ECDSA-AES256-SHA384:ECDHE-RSA-AES256-SHA384',
    ],
    ['key transport by RSA', 'AES128-GCM-SHA256:AES256-GCM-SHA384:AES128-SHA:AES256-SHA'],
    ['anything without a key exchange of its own', 'kRSA'],
    ['CCM with short tags', 'AES128-CCM8:AES256-CCM8:ECDHE-ECDSA-AES128-CCM8'],
    ['pre-shared keys', 'PSK'],
    ['no authentication', 'aNULL'],
  ])('does not take %s', async (_what, ciphers) => {
    expect(await handshake(weak(ciphers))).toBeUndefined()
  })

  it.each(['ECDHE-RSA-AES128-GCM-SHA256', 'ECDHE-RSA-AES256-GCM-SHA384', 'ECDHE-RSA-CHACHA20-POLY1305'])(
    'takes %s',
    async (cipher) => {
      expect(await handshake({ ...TLS_1_2, ciphers: cipher })).toMatchObject({ cipher, version: 'TLSv1.2' })
    },
  )

  it.each(['TLSv1', 'TLSv1.1'] as const)('is the oldest version: %s is refused', async (version) => {
    const options = { minVersion: version, maxVersion: version, ciphers: 'DEFAULT:@SECLEVEL=0' } as const

    expect(await handshake(options)).toBeUndefined()
  })
})

describe('TLS 1.3', () => {
  it.each(['TLS_AES_128_GCM_SHA256', 'TLS_AES_256_GCM_SHA384', 'TLS_CHACHA20_POLY1305_SHA256'])(
    'takes %s',
    async (cipher) => {
      expect(await handshake({ ciphers: cipher })).toMatchObject({ cipher, version: 'TLSv1.3' })
    },
  )
})

describe('a protocol', () => {
  it.each([
    ['that nothing stands behind', ['ziti-ctrl']],
    ['of HTTP that is not spoken here', ['h2']],
    ['unheard of', ['gopher', 'ziti-ctrl', 'h2']],
  ])('%s is not agreed on', async (_what, ALPNProtocols) => {
    expect(await handshake({ ALPNProtocols })).toBeUndefined()
  })

  it.each([
    ['HTTP/1.1 among others', ['ziti-ctrl', 'h2', 'http/1.1'], 'http/1.1'],
    ['HTTP/1.1', ['http/1.1'], 'http/1.1'],
    ['none', undefined, false],
  ])('is agreed on with a client that offers %s', async (_what, ALPNProtocols, protocol) => {
    expect(await handshake(ALPNProtocols ? { ALPNProtocols } : {})).toMatchObject({ protocol })
  })
})
