// Caches the certificates that clients presented besides their own, because reading it from a connection costs as much as everything
// else that a sign-in does, and completes them if a connection does not give all of them.
//
// The issuers of a client are judged again at each sign-in, and used only if OpenSSL has verified again that the client
// presents an issuer of its certificate.
import type { X509Certificate } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { MAX_PRESENTED_CERTIFICATES } from '../../pki/chains.ts'
import type { PeerCertificates } from '../../pki/peer-certificates.ts'

// Some 50,000 clients that present nothing but issuers that are known.
const MAX_BYTES = 16 * 1024 * 1024
const ENTRY_BYTES = 300
// The memory that OpenSSL allocates for a certificate; see parsed-certificates.ts.
const CERTIFICATE_BYTES = 8_000

/** The certificates by which one client's own led to an authority. */
interface PresentedPath {
  readonly issuers: readonly X509Certificate[]
  /** How many of them are in memory for the sake of this entry only. */
  readonly foreignCount: number
}

// Certificates of one name: those before and after a renewal.
const MAX_NAMESAKES = 4
const MAX_INTERMEDIATE_BYTES = 16 * 1024 * 1024

/** By the fingerprint of the client's own certificate; only of clients that signed in, so that no other can fill the memory. */
export class PresentedIssuers {
  readonly #paths = new LRUCache<string, PresentedPath>({
    maxSize: MAX_BYTES,
    sizeCalculation: ({ foreignCount }) => ENTRY_BYTES + foreignCount * CERTIFICATE_BYTES,
  })

  /** Intermediates by their names; only of clients that their authority vouched for. */
  readonly #intermediates = new LRUCache<string, readonly X509Certificate[]>({
    maxSize: MAX_INTERMEDIATE_BYTES,
    sizeCalculation: (namesakes) => namesakes.reduce((size, { raw }) => size + CERTIFICATE_BYTES + raw.length, 0),
    dispose: (_namesakes, _name, reason) => {
      if (reason === 'evict') this.#notify()
    },
  })

  readonly #listeners = new Set<() => void>()

  /**
   * Calls `listener` when the first intermediate is stored, and when one is dropped: sessions of clients that presented it cannot be
   * resumed without it.
   */
  onIntermediatesChange(listener: () => void): void {
    this.#listeners.add(listener)
  }

  #notify(): void {
    for (const listener of this.#listeners) listener()
  }

  /** Stores the certificates between that of a client and its authority, for clients whose connections do not give them. */
  addIntermediates(certificates: readonly X509Certificate[]): void {
    for (const certificate of certificates) {
      const name = certificate.subject
      if (!name) continue
      const namesakes = this.#intermediates.get(name) ?? []
      if (namesakes.some(({ raw }) => raw.equals(certificate.raw))) continue
      const hasChanged = this.#intermediates.size === 0 || namesakes.length >= MAX_NAMESAKES
      this.#intermediates.set(name, [certificate, ...namesakes].slice(0, MAX_NAMESAKES))
      if (hasChanged) this.#notify()
    }
  }

  /**
   * Lists what a client may have presented, its own certificate first: what is read at little cost, that with the intermediates by
   * which others led to their authority, and everything. The next is needed only if the one before leads to no authority.
   * A session that is resumed has the own certificate only, and the issuers that the client presented are among those that are known.
   * @param isKnown whether the client has proven to be one that is known here
   * @param intermediates those of the authority that the client must lead to, as far as that is certain
   */
  *listPresented(
    peer: PeerCertificates,
    isKnown: boolean,
    intermediates: readonly X509Certificate[] = [],
  ): Generator<readonly X509Certificate[]> {
    const path = peer.readAll()
    if (peer.isResumed) {
      const issuers = peer.isPresentedAlone ? [] : [...intermediates, ...this.findAbove(path[0])]
      yield [...path, ...issuers].slice(0, MAX_PRESENTED_CERTIFICATES)
      return
    }
    yield path
    // Only a path over other certificates can have lost the next one.
    if (path.length < 2 || path.length > MAX_PRESENTED_CERTIFICATES) return
    const knownIssuers = this.findAbove(path.at(-1))
    if (knownIssuers.length > 0) yield [...path, ...knownIssuers].slice(0, MAX_PRESENTED_CERTIFICATES)
    const every = peer.readEvery(isKnown)
    if (every) yield every
  }

  /** The stored certificates that may be above one, each with those above it. */
  findAbove(last: X509Certificate | undefined): X509Certificate[] {
    const above = new Set<X509Certificate>()
    const work = last ? [last] : []
    for (let next = work.shift(); next && above.size < MAX_PRESENTED_CERTIFICATES; next = work.shift()) {
      for (const issuer of this.#intermediates.get(next.issuer ?? '') ?? []) {
        if (above.has(issuer)) continue
        above.add(issuer)
        work.push(issuer)
      }
    }
    return [...above]
  }

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
