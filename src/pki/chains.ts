// Builds certificate chains from a leaf, over other presented certificates, to a trust anchor (RFC 5280 §6).
//
// It is ours because node:crypto verifies one signature at a time. It is stricter than OpenSSL in a few points: an
// authority must have basic constraints, and one with name constraints, policy constraints or another critical extension
// that is not evaluated is rejected, not evaluated in part. A property test compares its verdicts on generated chains with
// those of OpenSSL.
import type { KeyObject, X509Certificate } from 'node:crypto'
import type { Instant } from '../foundation/clock.ts'
import { findKeyObjection, isAcceptedSignatureAlgorithm, isSignedBy } from './algorithms.ts'
import {
  allowsClientAuthentication,
  type EncodedCertificate,
  isWithinDates,
  readNotAfter,
  readNotBefore,
  readPublicKey,
  readSignatureAlgorithm,
  readSignedParts,
  readSubject,
} from './certificates.ts'
import { DerError } from './der.ts'
import { findEndEntityObjection, findExtensionObjection, readExtensions, readPathLength } from './extensions.ts'

/**
 * The purpose of a chain. `client`: every certificate of it must allow the authentication of TLS clients, if it restricts
 * its purposes. `named-client`: so that the names in the leaf tell whose it is, the leaf must also be that of an end entity.
 */
export type ChainPurpose = 'client' | 'named-client'

export interface ChainOptions {
  readonly now: Instant
  /** Whether the leaf may be expired or not valid yet: the auth policy decides that, not the chain. */
  readonly ignoreLeafDates?: boolean
  /** Any purpose by default. */
  readonly purpose?: ChainPurpose | undefined
  /** The budget of signature checks; defaults to a new one. */
  readonly checks?: SignatureBudget
}

/** How many certificates the path may have that a client presents, its own included. No real one comes near. */
export const MAX_PRESENTED_CERTIFICATES = 10

// Terminates cycles.
const MAX_CHAIN_LENGTH = 10
// With those of the handshake, a client costs at most 20.
const MAX_SIGNATURE_CHECKS = 16
export const MAX_HANDSHAKE_CHECKS = 4
// An operator chose the trust anchor; every certificate below it comes from the client.
export const MAX_ANCHOR_RSA_BITS = 8192

/** Limits signature checks. One sign-in attempt has one budget for all authorities together. */
export class SignatureBudget {
  #left: number

  constructor(limit = MAX_SIGNATURE_CHECKS) {
    this.#left = limit
  }

  /** Takes one check. Returns false if the budget is used up. */
  take(): boolean {
    if (this.#left === 0) return false
    this.#left -= 1
    return true
  }
}

/** A path from the leaf upwards. */
interface CertificatePath {
  readonly certificates: readonly X509Certificate[]
  /** How many authorities it has that path lengths count: those that are not self-issued (RFC 5280 §6.1.4). */
  readonly authorities: number
}

/**
 * Returns the path from `leaf` to one of `anchors`, both included, over `others` in any order; undefined if there is none, or
 * if finding one needs too many signature checks.
 *
 * Each certificate above the leaf, the anchor included, must be an authority within its dates, whose path length allows the
 * authorities below it. Each certificate must have an accepted key, no name constraints and no unknown critical extension,
 * and each below the anchor an accepted signature algorithm. The key usage of the leaf is not examined.
 */
export function buildChain(
  leaf: X509Certificate,
  others: readonly X509Certificate[],
  anchors: readonly X509Certificate[],
  { now, ignoreLeafDates = false, purpose, checks = new SignatureBudget() }: ChainOptions,
): X509Certificate[] | undefined {
  if (!ignoreLeafDates && !isWithinDates(leaf, now)) return undefined
  if (findLeafObjection(leaf, purpose)) return undefined
  const isUsable = (fields: AuthorityFields | undefined, maxRsaBits?: number) => {
    if (!fields || !(fields.notBefore <= now && now <= fields.notAfter)) return false
    if (purpose && !fields.allowsClients) return false
    return findKeyObjection(fields.publicKey, maxRsaBits) === undefined
  }
  const trusted = anchors.filter((certificate) => isUsable(getAuthorityFields(certificate), MAX_ANCHOR_RSA_BITS))
  const bag = others.filter(
    (certificate) => isUsable(getAuthorityFields(certificate)) && isAcceptablySigned(certificate),
  )
  // The paths with the fewest authorities come first: no longer path to a certificate leads further than the first one.
  const paths: CertificatePath[] = [{ certificates: [leaf], authorities: 0 }]
  const reached = new Set<X509Certificate>()
  for (let path = paths.shift(); path; path = paths.shift()) {
    const { certificates, authorities } = path
    const last = certificates.at(-1) as X509Certificate
    const canIssue = (candidate: X509Certificate) =>
      authorities <= (getAuthorityFields(candidate)?.pathLength ?? -1) && isIssuedBy(last, candidate, checks)
    const anchor = trusted.find(canIssue)
    if (anchor) return [...certificates, anchor]
    if (certificates.length >= MAX_CHAIN_LENGTH) continue
    for (const candidate of bag) {
      if (reached.has(candidate) || !canIssue(candidate)) continue
      reached.add(candidate)
      const isCounted = !isSelfIssued(candidate)
      const next = { certificates: [...certificates, candidate], authorities: authorities + (isCounted ? 1 : 0) }
      if (isCounted) paths.push(next)
      else paths.unshift(next)
    }
  }
  return undefined
}

/** Returns why a certificate cannot be an authority of a chain, whatever its key; undefined if it can. */
export function findAuthorityObjection(certificate: X509Certificate): string | undefined {
  if (!certificate.ca) return 'it is not an authority: its basic constraints or its key usage do not allow that'
  return withReadErrors(() => {
    const extensions = readExtensions(certificate)
    readPathLength(extensions)
    return findExtensionObjection(extensions)
  })
}

function findLeafObjection(leaf: X509Certificate, purpose: ChainPurpose | undefined): string | undefined {
  if (purpose && !allowsClientAuthentication(leaf)) return 'it does not allow client authentication'
  if (purpose === 'named-client') {
    const objection = withReadErrors(() => findEndEntityObjection(readExtensions(leaf)))
    if (objection) return objection
  }
  let cached = leafObjectionCache.get(leaf)
  if (!cached) {
    cached = { objection: readLeafObjection(leaf) }
    leafObjectionCache.set(leaf, cached)
  }
  return cached.objection
}

/** Cached, because a certificate never changes, and clients sign in again and again by the same one. */
const leafObjectionCache = new WeakMap<X509Certificate, { readonly objection: string | undefined }>()

function readLeafObjection(leaf: X509Certificate): string | undefined {
  if (!isAcceptablySigned(leaf)) return 'its signature algorithm is not accepted'
  // The dates decide elsewhere, but they must be some.
  if (!(readNotBefore(leaf) <= readNotAfter(leaf))) return 'it has no valid dates'
  return withReadErrors(() => findExtensionObjection(readExtensions(leaf))) ?? findKeyObjection(readPublicKey(leaf))
}

function isAcceptablySigned(certificate: EncodedCertificate): boolean {
  try {
    return isAcceptedSignatureAlgorithm(readSignatureAlgorithm(certificate))
  } catch (error) {
    if (error instanceof DerError) return false
    throw error
  }
}

function withReadErrors(findObjection: () => string | undefined): string | undefined {
  try {
    return findObjection()
  } catch (error) {
    if (error instanceof DerError) return 'its extensions cannot be read'
    throw error
  }
}

/** The fields of an authority that every check needs, cached because reading them is expensive. */
interface AuthorityFields {
  readonly notBefore: Instant
  readonly notAfter: Instant
  readonly publicKey: KeyObject
  readonly pathLength: number
  readonly allowsClients: boolean
  /** Whether it issued other authorities, as far as that was checked. */
  readonly issued: WeakMap<X509Certificate, boolean>
}

// A certificate never changes, and one authority is in the chain of many requests: its fields live as long as it does.
const authorityFieldsCache = new WeakMap<X509Certificate, AuthorityFields>()

/** Returns undefined if the certificate cannot be an authority. */
function getAuthorityFields(certificate: X509Certificate): AuthorityFields | undefined {
  let fields = authorityFieldsCache.get(certificate)
  if (!fields && findAuthorityObjection(certificate) === undefined) {
    const publicKey = readPublicKey(certificate)
    if (!publicKey) return undefined
    fields = {
      notBefore: readNotBefore(certificate),
      notAfter: readNotAfter(certificate),
      publicKey,
      pathLength: readPathLength(readExtensions(certificate)),
      allowsClients: allowsClientAuthentication(certificate),
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
  const publicKey = fields?.publicKey ?? readPublicKey(issuer)
  const isIssued = publicKey !== undefined && certificate.verify(publicKey)
  fields?.issued.set(certificate, isIssued)
  return isIssued
}

/**
 * Whether an authority signed a certificate, which is not parsed: OpenSSL takes longer for that than for the signature. The key, the
 * dates and the extensions of the certificate are not examined.
 */
export function isSignedByAuthority(certificate: EncodedCertificate, authority: X509Certificate): boolean {
  const publicKey = getAuthorityFields(authority)?.publicKey
  if (!publicKey) return false
  try {
    const { issuer, body, algorithm, signature } = readSignedParts(certificate)
    return issuer.equals(readSubject(authority)) && isSignedBy(algorithm, publicKey, body, signature)
  } catch (error) {
    if (error instanceof DerError) return false
    throw error
  }
}

/** Whether the certificate names itself as its issuer. */
function isSelfIssued({ subject, issuer }: X509Certificate): boolean {
  return subject === issuer
}

/** Whether the certificate is signed by its own key. */
export function isSelfSigned(certificate: X509Certificate): boolean {
  return isIssuedBy(certificate, certificate)
}
