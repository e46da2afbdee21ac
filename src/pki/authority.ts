// The controller's own certificate authority: roots, an intermediate that issues, and the server certificate, as they change.
//
// Certificates change in memory as one state, which is what the files hold. TLS contexts, enrollment JWTs, the key set and
// the record of the controller follow its changes. No state needs a repair, because the chain that the server sends is
// looked up among current and former authorities, whichever of them issued its certificate.
import type { KeyObject, X509Certificate } from 'node:crypto'
import type { Instant } from '../foundation/clock.ts'
import { errors } from '../foundation/errors.ts'
import {
  BACKDATE_MS,
  createIntermediate,
  createRoot,
  crossSignRoot,
  encodeTokenSigner,
  generateServerKey,
  isIntermediateDue,
  isServerCertificateDue,
  issueServerCertificate,
  LIFETIME_MS,
  limitEnd,
} from './authority-certificates.ts'
import {
  type AdoptedAuthority,
  AuthorityFiles,
  type AuthorityState,
  type KeyedCertificate,
  type RunAsOwner,
} from './authority-files.ts'
import {
  type AlternativeNames,
  computeFingerprint256,
  type EncodedCertificate,
  encodeCertificate,
  readNotAfter,
  toCertificatePem,
} from './certificates.ts'
import { isSelfSigned } from './chains.ts'
import type { SigningRequest } from './requests.ts'
import { deriveTrustDomain } from './spiffe.ts'
import { isRenewalHeld } from './trial.ts'

export type { KeyedCertificate } from './authority-files.ts'

/** The certificates that the authority replaces by itself. */
export type Renewed = 'intermediate' | 'server'

/** The contents of a client certificate besides the subject and the key of its request. */
export interface ClientCertificateOptions {
  /** How long it is valid, in milliseconds; one year by default. */
  readonly lifetimeMs?: number
  readonly names?: AlternativeNames
}

/** Authorities that certificates may lead to. */
export interface Anchors {
  /** Certificates that a chain may end at. */
  readonly anchors: readonly X509Certificate[]
  /** The anchors at which a proper chain ends. */
  readonly roots: readonly X509Certificate[]
}

// JWTs with the key id of an earlier server certificate may be outstanding.
const MAX_FORMER_SERVERS = 3

export class Authority {
  readonly #files: AuthorityFiles
  readonly #listeners = new Set<() => void>()
  #state: AuthorityState
  #views: AuthorityViews

  private constructor(files: AuthorityFiles, state: AuthorityState) {
    this.#files = files
    this.#state = state
    this.#views = toViews(state)
  }

  /** Creates all keys and certificates of a new controller with these `hosts`. Returns the paths of the files. */
  static make(directory: string, hosts: readonly string[], now: Instant): string[] {
    const files = new AuthorityFiles(directory)
    const root = createRoot(now)
    const intermediate = createIntermediate(root, now)
    const key = generateServerKey()
    const server = { key, certificate: issueServerCertificate(intermediate, key, hosts, now) }
    files.create(deriveTrustDomain(root.certificate), { root, intermediate, server })
    return files.paths
  }

  /** Creates the files of a controller that continues the authority of another one. */
  static adopt(directory: string, adopted: AdoptedAuthority): void {
    new AuthorityFiles(directory).adopt(adopted)
  }

  static exists(directory: string): boolean {
    return new AuthorityFiles(directory).exists()
  }

  /** Loads the files of `make`, and changes none of them. */
  static load(directory: string, runAsOwner?: RunAsOwner): Authority {
    const files = new AuthorityFiles(directory, runAsOwner)
    return new Authority(files, files.read())
  }

  /** The trust domain of SPIFFE ids: derived from the first root, and never changed, because issued certificates contain it. */
  get trustDomain(): string {
    return this.#state.trustDomain
  }

  get root(): X509Certificate {
    return this.#state.root
  }

  /** The root that is being replaced: clients that know no other one still trust the controller. */
  get previousRoot(): X509Certificate | undefined {
    return this.#state.replacement?.previousRoot
  }

  get intermediate(): KeyedCertificate {
    return this.#state.intermediate
  }

  get server(): KeyedCertificate {
    return this.#state.server
  }

  /** The server certificate and earlier ones with the same key, the newest first. */
  get serverCertificates(): readonly X509Certificate[] {
    return [this.#state.server.certificate, ...this.#state.formerServers]
  }

  /** The authorities that issued earlier, and whose certificates are still accepted. */
  get former(): readonly X509Certificate[] {
    return this.#state.former
  }

  /** The chain of the TLS server: its certificate and the intermediates, without the root. */
  get serverChainPem(): string {
    return this.listChain(this.#state.server.certificate).map(toCertificatePem).join('')
  }

  /** A certificate of this controller, and the intermediates between it and a root that clients know. */
  listChain(certificate: X509Certificate): readonly X509Certificate[] {
    return [certificate, ...listIntermediatesAbove(certificate, this.#state)]
  }

  get serverKeyPem(): string {
    return this.#state.server.key.export({ type: 'pkcs8', format: 'pem' }) as string
  }

  /**
   * The authorities that clients must trust. While the root replaces another one, both are in it, the new one first.
   * Former intermediates of these roots are in it, because some clients present their certificate alone. Roots come last: OpenZiti's
   * C SDK reads an identity file that others wrote without its first authority, when it signs in by OpenID Connect.
   */
  get bundle(): readonly X509Certificate[] {
    return this.#views.bundle
  }

  /** The PEM of the bundle, which clients store. */
  get bundlePem(): string {
    return this.bundle.map(toCertificatePem).join('')
  }

  /** The authorities that the certificate of an authenticator may lead to: former ones too, until they expire. */
  get trust(): Anchors {
    return this.#views.trust
  }

  /** SHA-256 of the root, lower-case hex: a person compares it, and a profile pins it. */
  get rootFingerprint(): string {
    return computeFingerprint256(this.root)
  }

  /** Calls `listener` after each replacement of a certificate. */
  onChange(listener: () => void): void {
    this.#listeners.add(listener)
  }

  /**
   * The same authority, except that what changes of it is written nowhere: the contents of the files are in the result, by their
   * names. Controllers that share the files commit them first.
   */
  draft(): { readonly authority: Authority; readonly contents: ReadonlyMap<string, string> } {
    const contents = new Map<string, string>()
    return { authority: new Authority(this.#files.draft(contents), this.#state), contents }
  }

  /** Reads the files again, all as one state, after another part has written them. */
  reload(): void {
    this.#set(this.#files.read())
    this.#notify()
  }

  /** Issues a client certificate. Alternative names of the request are ignored. */
  issueClient(
    request: SigningRequest,
    now: Instant,
    { lifetimeMs = LIFETIME_MS.client, names = {} }: ClientCertificateOptions = {},
  ): EncodedCertificate {
    const { intermediate } = this.#state
    return encodeCertificate(
      {
        purpose: 'client',
        subject: request.subject,
        publicKeyInfo: request.publicKeyInfo,
        notBefore: now - BACKDATE_MS,
        notAfter: limitEnd(intermediate.certificate, now + lifetimeMs),
        names,
      },
      intermediate,
    )
  }

  /** Issues one of the two certificates of a router, with the alternative names of its request: routers refuse other ones. */
  issueRouter(request: SigningRequest, purpose: 'client' | 'server', now: Instant): EncodedCertificate {
    const { intermediate } = this.#state
    const { subject, publicKeyInfo, alternativeNames } = request
    const notAfter = limitEnd(intermediate.certificate, now + LIFETIME_MS.client)
    const names = alternativeNames ? { encoded: alternativeNames } : {}
    const values = { purpose, subject, publicKeyInfo, names, notBefore: now - BACKDATE_MS, notAfter }
    return encodeCertificate(values, intermediate)
  }

  /** Issues the certificate of a key that signs tokens. */
  issueTokenSigner(publicKey: KeyObject, now: Instant, notAfter: Instant): EncodedCertificate {
    return encodeTokenSigner(this.#state.intermediate, publicKey, now, notAfter)
  }

  /** The PEM of a client certificate that was just issued, and the intermediates. */
  clientChainPem(certificate: EncodedCertificate): string {
    return toCertificatePem(certificate) + this.#views.issuerChainPem
  }

  /**
   * Replaces the certificates that expire soon, lack a host, or lead to an earlier authority because a rotation was
   * interrupted.
   * @param trialEnds while an adopted network is on trial: no intermediate is made that the former controller would not know
   * @throws KeyFileError if the key of the root is required and not here; the server certificate is renewed nevertheless
   */
  renewDue(hosts: readonly string[], now: Instant, trialEnds?: Instant): Renewed[] {
    const renewed: Renewed[] = []
    this.#files.removeUnfinished()
    const { certificate } = this.intermediate
    try {
      const isDue = isIntermediateDue(certificate, this.root, this.former, now)
      if (isDue && !isRenewalHeld(certificate, trialEnds, now)) {
        this.#replaceIntermediate(now)
        renewed.push('intermediate')
      }
    } finally {
      if (isServerCertificateDue(this.server.certificate, this.intermediate.certificate, hosts, now)) {
        this.#replaceServer(hosts, now)
        renewed.push('server')
      }
      if (renewed.length > 0) this.#notify()
    }
    return renewed
  }

  /** Replaces the server certificate and keeps its key, because outstanding enrollment JWTs are signed by it. */
  renewServer(hosts: readonly string[], now: Instant): void {
    this.#replaceServer(hosts, now)
    this.#notify()
  }

  /**
   * Replaces the intermediate, and the server certificate with one of the new intermediate. Certificates of the former
   * intermediate remain valid. @throws KeyFileError if the key of the root is not here
   */
  rotateIntermediate(hosts: readonly string[], now: Instant): void {
    this.#replaceIntermediate(now)
    this.#replaceServer(hosts, now)
    this.#notify()
  }

  /**
   * Begins the replacement of the root: the new one issues from now on, and is trusted by clients that know only the previous
   * one. If the process is killed in between, `renewDue` completes it.
   * @throws ROOT_ROTATION_UNDER_WAY, KeyFileError
   */
  rotateRoot(hosts: readonly string[], now: Instant): void {
    if (this.previousRoot) throw errors.ROOT_ROTATION_UNDER_WAY()
    const previous = { certificate: this.root, key: this.#files.readRootKey(this.root) }
    const root = createRoot(now)
    const replacement = {
      previousRoot: previous.certificate,
      crossCertificate: crossSignRoot(root.certificate, previous),
    }
    this.#files.writeRoot(root, replacement)
    this.#set({ root: root.certificate, replacement })
    this.rotateIntermediate(hosts, now)
  }

  /**
   * Ends the replacement of the root: clients that know only the previous root no longer trust the controller. Their
   * certificates remain valid. @throws NO_ROOT_ROTATION
   */
  finishRootRotation(now: Instant): void {
    const { root } = this.#state
    if (!this.previousRoot) throw errors.NO_ROOT_ROTATION()
    this.#retire(this.previousRoot, now)
    this.#files.endReplacement(root)
    this.#set({ replacement: undefined })
    this.#notify()
  }

  #replaceIntermediate(now: Instant): void {
    const { root, intermediate: former } = this.#state
    const intermediate = createIntermediate({ certificate: root, key: this.#files.readRootKey(root) }, now)
    this.#retire(former.certificate, now)
    this.#files.writeIntermediate(intermediate)
    this.#set({ intermediate })
  }

  #replaceServer(hosts: readonly string[], now: Instant): void {
    const { intermediate, server } = this.#state
    const certificate = issueServerCertificate(intermediate, server.key, hosts, now, server.certificate)
    const formerServers = this.serverCertificates.slice(0, MAX_FORMER_SERVERS)
    this.#files.writeServer(certificate, formerServers)
    this.#set({ server: { key: server.key, certificate }, formerServers })
  }

  /** Adds an authority to the former ones, of which those that expired are dropped. */
  #retire(certificate: X509Certificate, now: Instant): void {
    const former = [certificate, ...this.#state.former].filter((one) => readNotAfter(one) > now)
    if (former.length > 0) this.#files.writeFormer(former)
    this.#set({ former })
  }

  #set(change: Partial<AuthorityState>): void {
    this.#state = { ...this.#state, ...change }
    this.#views = toViews(this.#state)
  }

  #notify(): void {
    for (const listener of this.#listeners) listener()
  }
}

/** Values that follow from the state, computed at each change, because requests read them. */
interface AuthorityViews {
  readonly bundle: readonly X509Certificate[]
  readonly trust: Anchors
  /** The intermediate that issues, and what is between it and a root that clients know. */
  readonly issuerChainPem: string
}

function toViews(state: AuthorityState): AuthorityViews {
  const { root, replacement, former } = state
  const intermediate = state.intermediate.certificate
  const roots = replacement ? [root, replacement.previousRoot] : [root]
  const anchors = [...roots, intermediate, ...former]
  const issuerChain = [intermediate, ...listIntermediatesAbove(intermediate, state)]
  return {
    bundle: [intermediate, ...former.filter((one) => roots.some((root) => isIssued(one, root))), ...roots],
    trust: { anchors, roots: anchors.filter(isSelfSigned) },
    issuerChainPem: issuerChain.map(toCertificatePem).join(''),
  }
}

/** The authorities between a certificate of this controller and a root that clients know, the lowest first. */
function listIntermediatesAbove(
  certificate: X509Certificate,
  { intermediate, former, replacement }: AuthorityState,
): X509Certificate[] {
  const candidates = [intermediate.certificate, ...former.filter((one) => !isSelfSigned(one))]
  if (replacement) candidates.push(replacement.crossCertificate)
  const path: X509Certificate[] = []
  for (let below = certificate; path.length < candidates.length; ) {
    const issuer = candidates.find((candidate) => candidate !== below && isIssued(below, candidate))
    if (!issuer) break
    path.push(issuer)
    below = issuer
  }
  return path
}

function isIssued(certificate: X509Certificate, issuer: X509Certificate): boolean {
  return certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey)
}
