// The certificates of a connection that Node.js gives without freeing them: what they cost is limited.
import type { X509Certificate } from 'node:crypto'
import type { TLSSocket } from 'node:tls'
import { expect, it } from 'vitest'
import { SocketCertificates } from '../../server/connections/socket-certificates.ts'
import { parseCertificate } from '../../src/pki/parsed-certificates.ts'
import { makeAuthority } from '../world/authorities.ts'

/** A connection over which so many certificates came. */
function openSocket(raw: Buffer, count: number): TLSSocket {
  let issuerCertificate: unknown
  for (let at = 0; at < count; at++) issuerCertificate = { raw, issuerCertificate }
  return { getPeerX509Certificate: () => issuerCertificate as X509Certificate } as TLSSocket
}

it('a connection gives its certificates in any order until too much memory is lost, to known clients and others by shares', async () => {
  const raw = Buffer.from((await makeAuthority()).certificate.rawData)
  const readFrom = (socket: TLSSocket, isKnown: boolean) => new SocketCertificates(socket).readEvery(isKnown)
  const first = openSocket(raw, 3)
  const certificates = readFrom(first, false)

  let readings = 0
  while (readings < 10_000 && readFrom(openSocket(raw, 100), false)) readings += 1

  expect(certificates).toEqual([1, 2, 3].map(() => parseCertificate(raw)))
  // Each takes some 8 KiB.
  expect(readings).toBeGreaterThan(5)
  expect(readings).toBeLessThan(13)
  expect(readFrom(openSocket(raw, 3), false)).toBeUndefined()
  expect(readFrom(first, false)).toEqual(certificates)
  expect(readFrom(openSocket(raw, 30), true)).toHaveLength(11)
})
