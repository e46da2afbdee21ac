// Keeps the pinned roots of a profile up to date while the controller replaces its root.
import type { X509Certificate } from 'node:crypto'
import { createHttpTransport, type HttpOptions } from '../../src/client/http-transport.ts'
import type { Transport } from '../../src/client/transport.ts'
import { toBearerHeaders } from './external-jwt.ts'
import { type Profile, Profiles } from './profiles.ts'

/**
 * A transport to the controller of a profile. When it closes, the profile learns the new root, or that the replacement has
 * ended, over the connection that the pinned roots verify.
 */
export function createProfileTransport(
  name: string,
  profile: Profile,
  headers: NonNullable<HttpOptions['headers']>,
): Transport {
  const { url, rootPem } = profile
  let presented: X509Certificate | undefined
  const onServerCertificate = (certificate: X509Certificate) => {
    presented = certificate
  }
  const transport = createHttpTransport({ url, rootPem, headers, onServerCertificate })
  return {
    ...transport,
    async close() {
      try {
        if (presented && isReplacingRoot(presented) !== hasSeveralRoots(rootPem)) {
          await updateRoots(transport, name, profile)
        }
      } catch {
        // The command has its result, and the next one tries again.
      } finally {
        await transport.close()
      }
    },
  }
}

/** While it replaces its root, a controller sends the new one beside the intermediate, cross-signed by the previous one. */
function isReplacingRoot(certificate: X509Certificate): boolean {
  return certificate.issuerCertificate?.issuerCertificate !== undefined
}

function hasSeveralRoots(rootPem: string): boolean {
  return rootPem.split('-----BEGIN CERTIFICATE-----').length > 2
}

async function updateRoots(transport: Transport, name: string, profile: Profile): Promise<void> {
  const { rootPem, token, accessToken } = profile
  const { readRoots } = await import('./trust.ts')
  // With the session, by which the controller knows that this identity has the new root.
  const headers = token === undefined ? toBearerHeaders(accessToken?.token) : { 'net-session': token }
  const reply = await transport.send({ method: 'GET', path: '/.well-known/est/cacerts', headers })
  const roots = reply.status === 200 ? readRoots(reply.text) : []
  if (roots.length === 0) return
  Profiles.open(process.env).updateRoots(name, rootPem, roots.map(({ pem }) => pem).join(''))
}
