// From a leaf, over whatever else was sent, to a certificate that is trusted.
import type { KeyObject, X509Certificate } from 'node:crypto'
import type { Instant } from '../clock.ts'
import { findKeyObjection } from './algorithms.ts'
import { readNotAfter, readNotBefore } from './certificates.ts'

export interface ChainOptions {
  readonly now: Instant
  /** Whether the leaf itself may be outside its dates: an auth policy decides that, not the chain. */
  readonly ignoreLeafDates?: boolean
  /** What signature checks may still cost; a budget of its own unless given. */
  readonly checks?: SignatureBudget
}

/** How many certificates the path may have that a client presents, its own included. No real one comes near. */
export const MAX_PRESENTED_CERTIFICATES = 10

// It ends cycles.
const MAX_CHAIN_LENGTH = 10
const MAX_SIGNATURE_CHECKS = 20
// An operator chose the authority that a chain may end at; everything below it comes from the client.
const MAX_ANCHOR_RSA_BITS = 8192

/** How many signatures may still be checked. One attempt to sign in has one budget, whatever it is checked against. */
export class SignatureBudget {
  #left = MAX_SIGNATURE_CHECKS

  /** Takes one check from the budget. Returns whether there was one. */
  take(): boolean {
    if (this.#left === 0) return false
    this.#left -= 1
    return true
  }
}

/**
 * The path from `leaf` to one of `anchors`, both included, over `others` in any order; undefined if there is none, or if
 * finding one costs too many signature checks. Every certificate above the leaf must be an authority with an acceptable key
 * and within its dates.
 */
export function buildChain(
  leaf: X509Certificate,
  others: readonly X509Certificate[],
  anchors: readonly X509Certificate[],
  { now, ignoreLeafDates = false, checks = new SignatureBudget() }: ChainOptions,
): X509Certificate[] | undefined {
  if (!ignoreLeafDates && !(readNotBefore(leaf) <= now && now <= readNotAfter(leaf))) return undefined
  const usable = (certificate: X509Certificate, maxRsaBits?: number) => {
    const facts = getAuthorityFields(certificate)
    if (!facts || now < facts.notBefore || facts.notAfter < now) return false
    return findKeyObjection(facts.publicKey, maxRsaBits) === undefined
  }
  const trusted = anchors.filter((certificate) => usable(certificate, MAX_ANCHOR_RSA_BITS))
  const bag = others.filter((certificate) => usable(certificate))
  // Each certificate is tried once: what can be built above it does not depend on how it was reached.
  const tried = new Set<X509Certificate>()
  const extend = (path: readonly X509Certificate[]): X509Certificate[] | undefined => {
    const last = path.at(-1) as X509Certificate
    const anchor = trusted.find((candidate) => isIssuedBy(last, candidate, checks))
    if (anchor) return [...path, anchor]
    if (path.length >= MAX_CHAIN_LENGTH) return undefined
    for (const candidate of bag) {
      if (tried.has(candidate) || !isIssuedBy(last, candidate, checks)) continue
      tried.add(candidate)
      const found = extend([...path, candidate])
      if (found) return found
    }
    return undefined
  }
  return extend([leaf])
}

/** What is asked of an authority again and again; reading it from the certificate takes longer than using it. */
interface AuthorityFields {
  readonly notBefore: Instant
  readonly notAfter: Instant
  readonly publicKey: KeyObject
  /** Whether it issued these other authorities. */
  readonly issued: WeakMap<X509Certificate, boolean>
}

// A certificate never changes, and one authority is in the chain of many requests: its fields live as long as it does.
const authorityFieldsCache = new WeakMap<X509Certificate, AuthorityFields>()

/** Undefined for a certificate that is no authority. */
function getAuthorityFields(certificate: X509Certificate): AuthorityFields | undefined {
  let facts = authorityFieldsCache.get(certificate)
  if (!facts && certificate.ca) {
    const { publicKey } = certificate
    facts = {
      notBefore: readNotBefore(certificate),
      notAfter: readNotAfter(certificate),
      publicKey,
      issued: new WeakMap(),
    }
    authorityFieldsCache.set(certificate, facts)
  }
  return facts
}

/** With the budget used up nothing was issued by anybody; what was found out before costs nothing. */
function isIssuedBy(certificate: X509Certificate, issuer: X509Certificate, checks?: SignatureBudget): boolean {
  const facts = getAuthorityFields(issuer)
  const known = facts?.issued.get(certificate)
  if (known !== undefined) return known
  if (!certificate.checkIssued(issuer) || checks?.take() === false) return false
  const isIssued = certificate.verify(facts?.publicKey ?? issuer.publicKey)
  facts?.issued.set(certificate, isIssued)
  return isIssued
}

/** Signed by its own key. */
export function isSelfSigned(certificate: X509Certificate): boolean {
  return isIssuedBy(certificate, certificate)
}
