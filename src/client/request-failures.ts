// Says why a request had no response, in words of ours: what the system and the TLS library say of it belongs in the log.

/** Codes of certificates that lead to no authority that is trusted, or are for another name. */
export const TRUST_FAILURES: ReadonlySet<string> = new Set([
  'SELF_SIGNED_CERT_IN_CHAIN',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'CERT_SIGNATURE_FAILURE',
  'ERR_TLS_CERT_ALTNAME_INVALID',
])

/** By code: the reason why a request had no response. */
export const REQUEST_FAILURES: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ENOTFOUND: 'unknown host',
  EAI_AGAIN: 'the name of the host cannot be looked up now',
  ETIMEDOUT: 'timeout',
  ECONNRESET: 'connection reset',
  EPIPE: 'connection reset',
  EHOSTUNREACH: 'no route to host',
  ENETUNREACH: 'no route to host',
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another name',
  CERT_HAS_EXPIRED: 'its certificate has expired',
  CERT_NOT_YET_VALID: 'its certificate is not valid yet',
}

// The messages of the TLS library about a response that is not TLS.
const NO_TLS = /wrong version number|packet length too long|http request/i

/** The reason why an endpoint that an administrator configured gave no response. */
export function describeRequestFailure(error: unknown): string {
  const { code = '', message } = error as Error & { code?: string }
  const reason = REQUEST_FAILURES[code]
  if (reason !== undefined) return reason
  if (TRUST_FAILURES.has(code)) return 'its certificate is not from an authority that is trusted'
  if (code.startsWith('HPE_')) return 'what listens there does not speak HTTP'
  if (!/^(EPROTO$|ERR_SSL_)/.test(code)) return 'the request failed; the log says why'
  return `${NO_TLS.test(message) ? 'what listens there does not speak TLS' : 'the TLS handshake failed'} (${code})`
}
