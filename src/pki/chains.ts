// Builds certificate chains from a leaf, over other presented certificates, to a trust anchor.
import type { KeyObject, X509Certificate } from 'node:crypto'
import type { Instant } from '../clock.ts'
import { findKeyObjection } from './algorithms.ts'
import { readNotAfter, readNotBefore } from './certificates.ts'

export interface ChainOptions {
  readonly now: Instant
  /** Whether the leaf may be expired or not valid yet: the auth policy decides that, not the chain. */
  readonly ignoreLeafDates?: boolean
  /** The budget of signature checks; defaults to a new one. */
  readonly checks?: SignatureBudget
}

/** How many certificates the path may have that a client presents, its own included. No real one comes near. */
export const MAX_PRESENTED_CERTIFICATES = 10

// Terminates cycles.
const MAX_CHAIN_LENGTH = 10
const MAX_SIGNATURE_CHECKS = 20
// An operator chose the trust anchor; every certificate below it comes from the client.
const MAX_ANCHOR_RSA_BITS = 8192

/** Limits signature checks. One sign-in attempt has one budget for all authorities together. */
export class SignatureBudget {
  #left = MAX_SIGNATURE_CHECKS

  /** Takes one check. Returns false if the budget is used up. */
  take(): boolean {
    if (this.#left === 0) return false
    this.#left -= 1
    return true
  }
}

/**
 * Returns the path from `leaf` to one of `anchors`, both included, over `others` in any order; undefined if there is none, or
 * if finding one needs too many signature checks. Every certificate above the leaf must be a valid authority with an
 * acceptable key.
 */
export function buildChain(
  leaf: X509Certificate,
  others: readonly X509Certificate[],
  anchors: readonly X509Certificate[],
  { now, ignoreLeafDates = false, checks = new SignatureBudget() }: ChainOptions,
): X509Certificate[] | undefined {
  if (!ignoreLeafDates && !(readNotBefore(leaf) <= now && now <= readNotAfter(leaf))) return undefined
  const isUsable = (certificate: X509Certificate, maxRsaBits?: number) => {
    const fields = getAuthorityFields(certificate)
    if (!fields || now < fields.notBefore || fields.notAfter < now) return false
    return findKeyObjection(fields.publicKey, maxRsaBits) === undefined
  }
  const trusted = anchors.filter((certificate) => isUsable(certificate, MAX_ANCHOR_RSA_BITS))
  const bag = others.filter((certificate) => isUsable(certificate))
  // Each certificate is tried once, because the chain above it does not depend on the path to it.
  const tried = new Set<X509Certificate>()
  const extend = (path: readonly X509Certificate[]): X509Certificate[] | undefined => {
    const last = path.at(-1) as X509Certificate
    const anchor = trusted.find((candidate) => isIssuedBy(last, candidate, checks))
    if (anchor) return [...path, anchor]
    if (path.length >= MAX_CHAIN_LENGTH) return undefined
    for (const candidate of bag) {
      if (tried.has(candidate) || !isIssuedBy(last, candidate, checks)) continue
      tried.add(candidate)
      const chain = extend([...path, candidate])
      if (chain) return chain
    }
    return undefined
  }
  return extend([leaf])
}

/** The fields of an authority that every check needs, cached because reading them is expensive. */
interface AuthorityFields {
  readonly notBefore: Instant
  readonly notAfter: Instant
  readonly publicKey: KeyObject
  /** Whether it issued other authorities, as far as that was checked. */
  readonly issued: WeakMap<X509Certificate, boolean>
}

// A certificate never changes, and one authority is in the chain of many requests: its fields live as long as it does.
const authorityFieldsCache = new WeakMap<X509Certificate, AuthorityFields>()

/** Returns undefined if the certificate is not an authority. */
function getAuthorityFields(certificate: X509Certificate): AuthorityFields | undefined {
  let fields = authorityFieldsCache.get(certificate)
  if (!fields && certificate.ca) {
    const { publicKey } = certificate
    fields = {
      notBefore: readNotBefore(certificate),
      notAfter: readNotAfter(certificate),
      publicKey,
      issued: new WeakMap(),
    }
    authorityFieldsCache.set(certificate, fields)
  }
  return fields
}

/** Whether `issuer` signed `certificate`; false if the budget is used up. A cached result costs nothing. */
function isIssuedBy(certificate: X509Certificate, issuer: X509Certificate, checks?: SignatureBudget): boolean {
  const fields = getAuthorityFields(issuer)
  const isKnownIssuer = fields?.issued.get(certificate)
  if (isKnownIssuer !== undefined) return isKnownIssuer
  if (!certificate.checkIssued(issuer) || checks?.take() === false) return false
  const isIssued = certificate.verify(fields?.publicKey ?? issuer.publicKey)
  fields?.issued.set(certificate, isIssued)
  return isIssued
}

/** Whether the certificate is signed by its own key. */
export function isSelfSigned(certificate: X509Certificate): boolean {
  return isIssuedBy(certificate, certificate)
}
