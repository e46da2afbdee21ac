// Verifies client certificates against the authorities that they may lead to: the controller's own, and those of operators.
//
// Authorities of operators are looked up, not searched: an authenticator names the authority of its certificate, and any
// other certificate is compared only with authorities that have the name of its issuer. Their number therefore does not
// matter. The API session of such a certificate stores the authority, so that closing or deleting the authority ends it.
import type { X509Certificate } from 'node:crypto'
import type { Kysely } from 'kysely'
import { cas } from '../../definitions/resources/cas.ts'
import type { AnyRow } from '../../definitions/resources/define.ts'
import type { Instant } from '../../foundation/clock.ts'
import type { Authority } from '../../pki/authority.ts'
import { isWithinDates } from '../../pki/certificates.ts'
import { buildChain, type ChainPurpose, MAX_PRESENTED_CERTIFICATES, SignatureBudget } from '../../pki/chains.ts'
import type { Database } from '../../storage/database.ts'
import { entityFromRow } from '../../storage/entities/rows.ts'
import type { Commit } from '../../storage/transactions/changes.ts'
import type { DerivedRows } from '../../storage/transactions/projection.ts'
import { toNameKey } from '../authorities/authority-certificates.ts'
import type { ExternalIdClaim } from '../authorities/external-id-claim.ts'
import { type CertificateAuthority, RegisteredAuthority } from '../authorities/registered-authority.ts'
import type { AuthenticatorMatch } from './authentication-methods.ts'

/** An authority whose certificates are accepted as credentials. */
export interface ClientAuthority {
  /** Certificates that a chain may end at. */
  readonly anchors: readonly X509Certificate[]
  /** The anchors at which a proper chain ends. */
  readonly roots: readonly X509Certificate[]
  /** Certificates that a chain may lead over, besides those that the client presents. */
  readonly intermediates?: readonly X509Certificate[]
}

/** How a certificate leads to an authority. */
export interface ChainVerdict {
  /** Undefined if it is the controller's own. */
  readonly registered: RegisteredAuthority | undefined
  /**
   * The place of the identity's name in the certificate; null if its authority has no claim, or if a certificate of the path is not
   * meant for TLS clients, so that its names do not tell whose it is.
   */
  readonly claim: ExternalIdClaim | null
  /** Whether the presented certificates lead to a root; otherwise they lead only to an intermediate of the controller. */
  readonly isProper: boolean
  /** The certificates at which a chain of the authority may end. */
  readonly anchors: readonly X509Certificate[]
}

interface JudgeOptions {
  readonly purpose?: ChainPurpose
  /**
   * False if no authenticator holds the certificate: then an authority with a claim vouches for it only if its names tell whose
   * it is.
   */
  readonly canBePinned?: boolean
  /** Shared by all attempts to find a path for one request. */
  readonly checks?: SignatureBudget
}

export class ClientTrustStore implements DerivedRows {
  readonly kind = 'derived rows'
  readonly name = 'client trust'
  readonly #authority: Pick<Authority, 'trust'>
  #byId = new Map<string, RegisteredAuthority>()
  /** By the names under which certificates may name them as their issuer. */
  #byIssuerName = new Map<string, Set<RegisteredAuthority>>()

  constructor(authority: Pick<Authority, 'trust'>) {
    this.#authority = authority
  }

  /** The controller itself, with the authorities that it has at the moment. */
  get #own(): ClientAuthority {
    return this.#authority.trust
  }

  // ---- the projection -------------------------------------------------------------------------------------------------

  async rebuild(db: Kysely<Database>): Promise<void> {
    const rows = await db.selectFrom('cas').selectAll().execute()
    this.#byId = new Map()
    this.#byIssuerName = new Map()
    for (const row of rows) this.#add(entityFromRow(cas, row as AnyRow) as CertificateAuthority)
  }

  apply({ changes }: Commit): void {
    for (const { resource, id, after } of changes) {
      if (resource !== cas.plural) continue
      this.#remove(id)
      if (after) this.#add(after)
    }
  }

  #add(record: CertificateAuthority): void {
    const authority = new RegisteredAuthority(record)
    this.#byId.set(record.id, authority)
    for (const name of authority.issuerNames)
      this.#byIssuerName.set(name, (this.#byIssuerName.get(name) ?? new Set()).add(authority))
  }

  #remove(id: string): void {
    const authority = this.#byId.get(id)
    if (!authority) return
    this.#byId.delete(id)
    for (const name of authority.issuerNames) {
      const namesakes = this.#byIssuerName.get(name)
      namesakes?.delete(authority)
      if (namesakes?.size === 0) this.#byIssuerName.delete(name)
    }
  }

  // ---- authorities ----------------------------------------------------------------------------------------------------

  /** Whether operators brought any authority. */
  get hasRegistered(): boolean {
    return this.#byId.size > 0
  }

  /** An authority that an operator brought; undefined if there is none of this id. */
  getRegistered(id: string): RegisteredAuthority | undefined {
    return this.#byId.get(id)
  }

  /** The authorities of operators whose key they have proven to hold. */
  listVerified(): RegisteredAuthority[] {
    return [...this.#byId.values()].filter(({ record }) => record.isVerified)
  }

  /**
   * Returns the authorities that a sign-in is verified against. If an authenticator holds the certificate: the controller's
   * own, or those of operators that may have issued it, its own authority first. Otherwise those that may have issued it and
   * find identities by a claim; for the certificates of unknown clients there is none as a rule, and they cost no check.
   */
  listForSignIn(
    authenticator: AuthenticatorMatch | undefined,
    presented: readonly X509Certificate[],
  ): readonly ClientAuthority[] {
    if (authenticator && authenticator.caId === null) return [this.#own]
    const others = this.#listIssuers(presented, ({ isAuthEnabled, externalIdClaim }) => {
      return isAuthEnabled && (authenticator !== undefined || externalIdClaim !== null)
    })
    const own = authenticator?.caId ? this.#byId.get(authenticator.caId) : undefined
    return own?.record.isAuthEnabled ? [own, ...others.filter((authority) => authority !== own)] : others
  }

  /** The verified authorities of operators that may have issued one of the certificates, by their names. */
  #listIssuers(
    certificates: readonly X509Certificate[],
    isAccepted: (record: CertificateAuthority) => boolean,
  ): RegisteredAuthority[] {
    const names = new Set(certificates.map(({ issuer }) => toNameKey(issuer ?? '')))
    const issuers = [...names].flatMap((name) => [...(this.#byIssuerName.get(name) ?? [])])
    return issuers.filter(({ record }) => record.isVerified && isAccepted(record))
  }

  // ---- judging --------------------------------------------------------------------------------------------------------

  /**
   * Returns how a certificate leads to one of the authorities; undefined if it leads to none. All authorities together share
   * one budget of signature checks. The auth policy decides whether the leaf may be expired.
   */
  judge(
    authorities: readonly ClientAuthority[],
    leaf: X509Certificate,
    others: readonly X509Certificate[],
    now: Instant,
    { purpose, canBePinned = true, checks = new SignatureBudget() }: JudgeOptions = {},
  ): ChainVerdict | undefined {
    const options = { now, ignoreLeafDates: true, checks }
    for (const authority of authorities) {
      const { anchors, roots, intermediates = [] } = authority
      const registered = authority instanceof RegisteredAuthority ? authority : undefined
      const claim = registered?.record.externalIdClaim ?? null
      const bag = [...others.map((certificate) => toAnchor(certificate, anchors)), ...intermediates]
      const leadsTo = (ends: readonly X509Certificate[], required: ChainPurpose | undefined) =>
        buildChain(leaf, bag, ends, { ...options, purpose: required }) !== undefined
      if (claim && leadsTo(roots, 'named-client')) return { registered, claim, isProper: true, anchors }
      if (claim && !canBePinned) continue
      if (leadsTo(roots, purpose)) return { registered, claim: null, isProper: true, anchors }
      if (roots !== anchors && leadsTo(anchors, purpose)) return { registered, claim: null, isProper: false, anchors }
    }
    return undefined
  }

  /** Whether the controller issued the certificate to a TLS client, by a chain that is valid at `now`. */
  isOwnClient(leaf: X509Certificate, now: Instant): boolean {
    return this.judge([this.#own], leaf, [], now, { purpose: 'client' }) !== undefined
  }

  /** Whether the controller issued the certificate, and it is valid at `now`. Its purpose is not judged: routers have both kinds. */
  isOwn(leaf: X509Certificate, now: Instant): boolean {
    return isWithinDates(leaf, now) && this.judge([this.#own], leaf, [], now) !== undefined
  }

  /** The authorities of the controller below its roots, former ones too. */
  listOwnIntermediates(): X509Certificate[] {
    const { anchors, roots } = this.#own
    return anchors.filter((anchor) => !roots.includes(anchor))
  }

  /** Whether a client leads to an authority of an operator now. @param presented the certificates of the client, the proven one first */
  isVouchedByOperator(presented: readonly X509Certificate[], now: Instant, checks: SignatureBudget): boolean {
    const [leaf, ...others] = presented
    if (!leaf || presented.length > MAX_PRESENTED_CERTIFICATES) return false
    const issuers = this.#listIssuers(presented, () => true)
    return this.judge(issuers, leaf, others, now, { checks }) !== undefined
  }

  /** Whether the certificate is that of an authority of the controller itself. */
  isOwnAuthority({ raw }: X509Certificate): boolean {
    return this.#own.anchors.some((anchor) => anchor.raw.equals(raw))
  }

  /**
   * Returns the authority of a certificate that an administrator gives to an identity, by a chain that was valid at `now`;
   * undefined if no authority vouches for it.
   */
  findAuthority(leaf: X509Certificate, now: Instant): ChainVerdict | undefined {
    return this.judge([this.#own, ...this.#listIssuers([leaf], () => true)], leaf, [], now)
  }

  /**
   * Returns the authority, of those that let every certificate enroll, that vouches for a client now; undefined if there is
   * none. @param presented the certificates of the client, the proven one first
   */
  findEnrolling(
    presented: readonly X509Certificate[],
    now: Instant,
    checks?: SignatureBudget,
  ): RegisteredAuthority | undefined {
    const possible = this.#listIssuers(presented, ({ isAutoCaEnrollmentEnabled }) => isAutoCaEnrollmentEnabled)
    return findVouching(possible, presented, now, checks)
  }

  /** Whether an authority vouches for a client now. @param presented the certificates of the client, the proven one first */
  isVouchedBy(
    authority: RegisteredAuthority,
    presented: readonly X509Certificate[],
    now: Instant,
    checks?: SignatureBudget,
  ): boolean {
    return findVouching([authority], presented, now, checks) !== undefined
  }
}

/** The first of the authorities that a client certificate leads to, within its dates. All share one budget. */
function findVouching(
  authorities: readonly RegisteredAuthority[],
  presented: readonly X509Certificate[],
  now: Instant,
  checks = new SignatureBudget(),
): RegisteredAuthority | undefined {
  const [leaf, ...others] = presented
  if (!leaf || presented.length > MAX_PRESENTED_CERTIFICATES) return undefined
  return authorities.find(({ anchors, intermediates, record }) => {
    const purpose = record.externalIdClaim ? 'named-client' : 'client'
    const bag = [...others.map((certificate) => toAnchor(certificate, anchors)), ...intermediates]
    return buildChain(leaf, bag, anchors, { now, purpose, checks }) !== undefined
  })
}

/** Returns the anchor with the same bytes, if there is one, because checks are cached by object. */
function toAnchor(certificate: X509Certificate, anchors: readonly X509Certificate[]): X509Certificate {
  const { raw } = certificate
  return anchors.find((anchor) => anchor.raw.equals(raw)) ?? certificate
}
