// From a leaf, over whatever else was sent, to a certificate that is trusted.
import type { KeyObject, X509Certificate } from 'node:crypto'
import type { Instant } from '../clock.ts'
import { notAfter, notBefore } from './certificates.ts'

export interface ChainOptions {
  readonly now: Instant
  /** Whether the leaf itself may be outside its dates: an auth policy decides that, not the chain. */
  readonly ignoreLeafDates?: boolean
}

// No real chain is near this long; it ends cycles and keeps a hostile bag of certificates from costing much.
const LONGEST_CHAIN = 10
const MOST_CERTIFICATES = 20

/**
 * The path from `leaf` to one of `anchors`, both included, over `others` in any order; undefined where there is none.
 * Every certificate above the leaf must be an authority and within its dates.
 */
export function buildChain(
  leaf: X509Certificate,
  others: readonly X509Certificate[],
  anchors: readonly X509Certificate[],
  { now, ignoreLeafDates = false }: ChainOptions,
): X509Certificate[] | undefined {
  if (!ignoreLeafDates && !(notBefore(leaf) <= now && now <= notAfter(leaf))) return undefined
  const usable = (certificate: X509Certificate) => {
    const facts = authorityFacts(certificate)
    return facts !== undefined && facts.notBefore <= now && now <= facts.notAfter
  }
  const trusted = anchors.filter(usable)
  const bag = others.slice(0, MOST_CERTIFICATES).filter(usable)
  // Each certificate is tried once: what can be built above it does not depend on how it was reached.
  const tried = new Set<X509Certificate>()
  const extend = (path: readonly X509Certificate[]): X509Certificate[] | undefined => {
    const last = path.at(-1) as X509Certificate
    const anchor = trusted.find((candidate) => isIssuedBy(last, candidate))
    if (anchor) return [...path, anchor]
    if (path.length >= LONGEST_CHAIN) return undefined
    for (const candidate of bag) {
      if (tried.has(candidate) || !isIssuedBy(last, candidate)) continue
      tried.add(candidate)
      const found = extend([...path, candidate])
      if (found) return found
    }
    return undefined
  }
  return extend([leaf])
}

/** What is asked of an authority again and again; reading it from the certificate takes longer than using it. */
interface AuthorityFacts {
  readonly notBefore: Instant
  readonly notAfter: Instant
  readonly publicKey: KeyObject
  /** Whether it issued these other authorities. */
  readonly issued: WeakMap<X509Certificate, boolean>
}

const knownFacts = new WeakMap<X509Certificate, AuthorityFacts>()

/** Undefined for a certificate that is no authority. */
function authorityFacts(certificate: X509Certificate): AuthorityFacts | undefined {
  let facts = knownFacts.get(certificate)
  if (!facts && certificate.ca) {
    const { publicKey } = certificate
    facts = { notBefore: notBefore(certificate), notAfter: notAfter(certificate), publicKey, issued: new WeakMap() }
    knownFacts.set(certificate, facts)
  }
  return facts
}

function isIssuedBy(certificate: X509Certificate, issuer: X509Certificate): boolean {
  const facts = authorityFacts(issuer)
  const known = facts?.issued.get(certificate)
  if (known !== undefined) return known
  const isIssued = certificate.checkIssued(issuer) && certificate.verify(facts?.publicKey ?? issuer.publicKey)
  facts?.issued.set(certificate, isIssued)
  return isIssued
}

/** Signed by its own key. */
export function isSelfSigned(certificate: X509Certificate): boolean {
  return isIssuedBy(certificate, certificate)
}
