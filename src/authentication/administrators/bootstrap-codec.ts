// Encodes and decodes bootstrap tokens.
import { isUuid } from '../../foundation/ids.ts'

/** The content of a bootstrap token: the URL of the controller, the fingerprint of its root certificate, and the one-time token. */
export interface Bootstrap {
  readonly url: string
  /** SHA-256 of the root certificate, lower-case hex. */
  readonly fingerprint: string
  readonly token: string
}

/** The token as text. */
export function encodeBootstrap({ url, fingerprint, token }: Bootstrap): string {
  return Buffer.from([url, fingerprint, token].join('\n')).toString('base64url')
}

/** The content of a token; undefined if the text is not a bootstrap token. */
export function decodeBootstrap(text: string): Bootstrap | undefined {
  const [url = '', fingerprint = '', token = ''] = Buffer.from(text.trim(), 'base64url').toString('utf8').split('\n')
  const isValid = URL.canParse(url) && /^[0-9a-f]{64}$/.test(fingerprint) && isUuid(token)
  return isValid ? { url, fingerprint, token } : undefined
}
