// Reads the URL of a controller as people write it.
import { makeUsageError } from '../foundation/exit-codes.ts'

/**
 * Returns `https://host:port`; the scheme may be missing. @throws CommandError with exit code 2 if the text is not such
 * a URL
 */
export function normalizeUrl(text: string): string {
  const url = text.includes('://') ? text : `https://${text}`
  if (URL.canParse(url) && url.startsWith('https://')) return new URL(url).origin
  throw makeUsageError(`${text} is not the URL of a controller`, { hint: 'https://HOST:PORT' })
}
