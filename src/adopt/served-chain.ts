// Whether clients that enrolled with the former controller trust this one: by OpenSSL's rules, in a handshake.
//
// OpenSSL judges dates by the clock of the machine. Where that differs from the clock of the controller, the latter decides.
import type { X509Certificate } from 'node:crypto'
import { Duplex } from 'node:stream'
import { connect, createServer, type TLSSocket } from 'node:tls'
import type { Instant } from '../foundation/clock.ts'
import type { Authority } from '../pki/authority.ts'
import { toCertificatePem } from '../pki/certificates.ts'
import { buildChain, isSelfSigned } from '../pki/chains.ts'

const DATE_ERRORS: ReadonlySet<string> = new Set(['CERT_HAS_EXPIRED', 'CERT_NOT_YET_VALID'])

/**
 * Returns why a client rejects the chain that the server sends; undefined if it accepts it.
 * @param bundle the authorities that the client stored when it enrolled
 */
export async function findChainObjection(
  authority: Authority,
  bundle: readonly X509Certificate[],
  now: Instant,
): Promise<string | undefined> {
  const server = createServer({ key: authority.serverKeyPem, cert: authority.serverChainPem })
  server.on('tlsClientError', () => {})
  const [near, far] = createPair()
  server.emit('connection', far)
  const ca = bundle.map(toCertificatePem)
  return new Promise((resolve) => {
    const socket: TLSSocket = connect({
      socket: near,
      ca,
      servername: 'localhost',
      checkServerIdentity: () => undefined,
    })
    const finish = (objection: string | undefined) => {
      socket.destroy()
      far.destroy()
      resolve(objection)
    }
    socket.once('secureConnect', () => finish(undefined))
    socket.once('error', ({ code = '', message }: NodeJS.ErrnoException) => {
      const isOfOtherTime = DATE_ERRORS.has(code) && leadsToRoot(authority, bundle, now)
      finish(isOfOtherTime ? undefined : message)
    })
  })
}

function leadsToRoot(authority: Authority, bundle: readonly X509Certificate[], now: Instant): boolean {
  const [leaf, ...between] = authority.listChain(authority.server.certificate)
  const roots = bundle.filter(isSelfSigned)
  return leaf !== undefined && buildChain(leaf, [...between, ...bundle], roots, { now }) !== undefined
}

/** Two ends of a connection in memory. */
function createPair(): [Duplex, Duplex] {
  const ends: Duplex[] = []
  const create = (other: number) =>
    new Duplex({
      read() {},
      write(chunk, _encoding, done) {
        ends[other]?.push(chunk)
        done()
      },
      final(done) {
        ends[other]?.push(null)
        done()
      },
    })
  ends.push(create(1), create(0))
  return ends as [Duplex, Duplex]
}
