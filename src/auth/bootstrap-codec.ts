// Bootstrap tokens, as those who redeem them read them.
import { isUuid } from '../ids.ts'

/** What a bootstrap token says: where the controller is, how to recognise it, and the one-time token itself. */
export interface Bootstrap {
  readonly url: string
  /** SHA-256 of the root certificate, lower-case hex. */
  readonly fingerprint: string
  readonly token: string
}

export function encodeBootstrap({ url, fingerprint, token }: Bootstrap): string {
  return Buffer.from([url, fingerprint, token].join('\n')).toString('base64url')
}

/** Undefined where the text is no bootstrap token. */
export function decodeBootstrap(text: string): Bootstrap | undefined {
  const [url = '', fingerprint = '', token = ''] = Buffer.from(text.trim(), 'base64url').toString('utf8').split('\n')
  const isWhole = URL.canParse(url) && /^[0-9a-f]{64}$/.test(fingerprint) && isUuid(token)
  return isWhole ? { url, fingerprint, token } : undefined
}
