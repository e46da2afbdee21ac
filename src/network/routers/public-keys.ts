// Keeps edge routers informed of the certificates that those of clients may lead to, and of those by which tokens are verified. They
// refuse a client whose certificate leads to none of them, and a token by another key.
//
// A router is told about all of them when it connects, and about the difference at each change. Routers of release 1 need none.
import type { X509Certificate } from 'node:crypto'
import type { ClientTrustStore } from '../../authentication/sign-in/client-trust.ts'
import type { TokenKeys } from '../../authentication/tokens/token-keys.ts'
import { cas } from '../../definitions/resources/cas.ts'
import { certificates } from '../../definitions/resources/certificates.ts'
import { tokenKeys } from '../../definitions/resources/token-keys.ts'
import type { Authority } from '../../pki/authority.ts'
import { computeFingerprint } from '../../pki/certificates.ts'
import type { Change, ChangeOf, Commit } from '../../storage/transactions/changes.ts'
import type { SideEffect } from '../../storage/transactions/projection.ts'
import type { ConnectedRouter, ConnectedRouters } from './connected-routers.ts'
import type { PublicKey, PublicKeyAnnouncement } from './router-connection.ts'

type PublicKeysById = ReadonlyMap<string, PublicKey>

interface PublicKeyParts {
  readonly authority: Pick<Authority, 'trust' | 'onChange'>
  readonly clientTrust: Pick<ClientTrustStore, 'listVerified'>
  readonly connected: ConnectedRouters
  readonly tokenKeys: Pick<TokenKeys, 'listCertificates'>
}

export class PublicKeys implements SideEffect {
  readonly kind = 'side effect'
  readonly name = 'public keys of routers'
  readonly #authority: PublicKeyParts['authority']
  readonly #clientTrust: PublicKeyParts['clientTrust']
  readonly #connected: ConnectedRouters
  readonly #tokenKeys: PublicKeyParts['tokenKeys']
  /** The public keys that connected routers hold. Undefined while no router is connected that has received them. */
  #announced: PublicKeysById | undefined
  /** All of `#announced`, for routers that connect. */
  #all: PublicKeyAnnouncement | undefined

  constructor({ authority, clientTrust, connected, tokenKeys }: PublicKeyParts) {
    this.#authority = authority
    this.#clientTrust = clientTrust
    this.#connected = connected
    this.#tokenKeys = tokenKeys
    authority.onChange(() => this.#announceDifference())
  }

  /** Tells a router about all keys. Routers without clients, and those that do not ask for keys, are told about none. */
  send({ isEdge, hello, connection }: ConnectedRouter): void {
    if (!isEdge || !hello.hasDataModel) return
    this.#announced ??= this.#list()
    this.#all ??= { kind: 'public-keys', added: [...this.#announced.values()], removedIds: [] }
    connection.announce(this.#all)
  }

  async restart(): Promise<void> {
    this.#announceDifference()
    for (const router of this.#connected.list()) this.send(router)
  }

  apply({ changes }: Commit): void {
    if (changes.some(({ resource }) => resource === cas.plural || resource === tokenKeys.plural))
      this.#announceDifference()
  }

  /** All keys, as a router that receives the whole data model has to know them. */
  list(): readonly PublicKey[] {
    return [...this.#list().values()]
  }

  /** The ids of those that routers must not trust any more after these changes, which memory does not know yet. */
  findRemoved(changes: readonly Change[]): string[] {
    const closedIds = new Set<string>()
    const removedIds: string[] = []
    const rootIds: string[] = []
    for (const change of changes) {
      if (isRootEntry(change) && change.before) rootIds.push(change.before.fingerprint)
      if (change.resource === cas.plural && change.before?.isVerified && !change.after?.isVerified)
        closedIds.add(change.id)
      if (change.resource === tokenKeys.plural && change.before && !change.after) removedIds.push(change.before.kid)
    }
    // Memory has dropped the root before its entry goes. The entry of one that does not issue any more is another one.
    if (rootIds.length > 0) {
      const remaining = this.#list()
      removedIds.push(...rootIds.filter((id) => !remaining.has(id)))
    }
    if (closedIds.size === 0) return removedIds
    const remaining = this.#list(closedIds)
    return [...removedIds, ...[...this.#list().keys()].filter((id) => !remaining.has(id))]
  }

  #announceDifference(): void {
    const before = this.#announced
    const routers = this.#listRouters()
    this.#announced = undefined
    if (!before || routers.length === 0) {
      this.#all = undefined
      return
    }
    const now = this.#list()
    const added = [...now.values()].filter(({ id }) => !before.has(id))
    const removedIds = [...before.keys()].filter((id) => !now.has(id))
    this.#announced = now
    if (added.length + removedIds.length === 0) return
    this.#all = undefined
    const announcement: PublicKeyAnnouncement = { kind: 'public-keys', added, removedIds }
    for (const { connection } of routers) connection.announce(announcement)
  }

  #listRouters(): ConnectedRouter[] {
    return this.#connected.list().filter(({ isEdge, hello }) => isEdge && hello.hasDataModel)
  }

  /** The roots of the controller, former ones too, the authorities of operators, and the keys of tokens. */
  #list(withoutIds: ReadonlySet<string> = NONE): PublicKeysById {
    const verified = this.#clientTrust.listVerified().filter(({ record }) => !withoutIds.has(record.id))
    const registered = verified.flatMap(({ anchors }) => anchors)
    const anchors = [...this.#authority.trust.roots, ...registered].map((one) =>
      toPublicKey(one, 'client certificates'),
    )
    const keys = [...anchors, ...this.#tokenKeys.listCertificates().map((one) => toPublicKey(one, 'tokens'))]
    return new Map(keys.map((key) => [key.id, key]))
  }
}

/** Whether a change may take away a key that routers trust. */
export function concernsKeys(change: Change): boolean {
  return change.resource === cas.plural || change.resource === tokenKeys.plural || isRootEntry(change)
}

/** Whether a change is of the inventory's entry of a root of the controller. */
function isRootEntry(change: Change): change is Change & ChangeOf<'certificates'> {
  return change.resource === certificates.plural && change.before?.kind === 'root'
}

const NONE: ReadonlySet<string> = new Set()

const publicKeys = new WeakMap<X509Certificate, PublicKey>()

/** Routers find a key by the fingerprint of its certificate. */
function toPublicKey(certificate: X509Certificate, usage: PublicKey['usage']): PublicKey {
  let key = publicKeys.get(certificate)
  if (!key) {
    key = { id: computeFingerprint(certificate), certificate: certificate.raw, usage }
    publicKeys.set(certificate, key)
  }
  return key
}
