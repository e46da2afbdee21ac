// Caches which certificates clients presented beside their own, because reading those from a connection costs as much as
// everything else that a sign-in does.
import type { X509Certificate } from 'node:crypto'
import { LRUCache } from 'lru-cache'

// Some 50,000 clients that present the controller's own intermediate.
const MAX_BYTES = 16 * 1024 * 1024
const ENTRY_BYTES = 300
// What OpenSSL allocates for a certificate; see parsed-certificates.ts.
const CERTIFICATE_BYTES = 8_000

/** The certificates by which one client's own led to an authority. */
interface PresentedPath {
  readonly issuers: readonly X509Certificate[]
  /** How many of them are in memory for the sake of this entry only. */
  readonly foreignCount: number
}

/** By the fingerprint of the client's own certificate; only of clients that signed in, so that no other can fill the memory. */
export class PresentedIssuers {
  readonly #paths = new LRUCache<string, PresentedPath>({
    maxSize: MAX_BYTES,
    sizeCalculation: ({ foreignCount }) => ENTRY_BYTES + foreignCount * CERTIFICATE_BYTES,
  })

  find(fingerprint256: string): readonly X509Certificate[] | undefined {
    return this.#paths.get(fingerprint256)?.issuers
  }

  /** @param known certificates that stay in memory anyway */
  add(fingerprint256: string, presented: readonly X509Certificate[], known: readonly X509Certificate[]): void {
    const issuers = presented.map((certificate) => known.find(({ raw }) => raw.equals(certificate.raw)) ?? certificate)
    const foreignCount = issuers.filter((certificate) => !known.includes(certificate)).length
    this.#paths.set(fingerprint256, { issuers, foreignCount })
  }
}
