// `--show-request`: prints each request to stderr, with credentials and tokens masked.
import type { Request, Transport } from '../../src/client/transport.ts'

/** A transport that writes each request before it sends it. */
export function withRequestOutput(transport: Transport, write: (text: string) => void): Transport {
  return {
    ...transport,
    send(request) {
      write(renderRequest(transport.target, request))
      return transport.send(request)
    },
    stream(request) {
      write(renderRequest(transport.target, request))
      return transport.stream(request)
    },
  }
}

const SECRET_HEADERS = new Set(['net-session', 'zt-session', 'authorization', 'mfa-validation-code'])
const SECRET_MEMBERS = /password|secret|token|^code$|^jwt$|keyPem/i

function renderRequest(target: string, { method, path, headers = {}, body }: Request): string {
  const url = target.startsWith('https://') ? target + path : `${path} (${target})`
  const lines = [`${method} ${maskQuery(url)}`]
  for (const [name, value] of Object.entries(headers)) {
    lines.push(`${name}: ${SECRET_HEADERS.has(name.toLowerCase()) ? '***' : value}`)
  }
  if (typeof body === 'string') lines.push('', maskForm(body.replace(/-----BEGIN [^-]*PRIVATE KEY-----[\s\S]*/, '***')))
  else if (body !== undefined) lines.push('', JSON.stringify(maskSecrets(body), null, 2))
  return lines.join('\n')
}

/** Masks the one-time tokens in a query string. */
function maskQuery(url: string): string {
  return url.replace(/([?&]token=)[^&\s]*/g, '$1***')
}

/** Masks the codes and tokens of a form. */
function maskForm(text: string): string {
  return text.replace(/((?:^|&)(?:code|code_verifier|\w*_token|password)=)[^&]*/g, '$1***')
}

function maskSecrets(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(maskSecrets)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [
      name,
      SECRET_MEMBERS.test(name) && inner !== null && typeof inner !== 'object' ? '***' : maskSecrets(inner),
    ]),
  )
}
