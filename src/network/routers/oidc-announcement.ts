// Whether clients are told that they can sign in by OpenID Connect: only if they do not lose routers by it.
//
// SDKs prefer OpenID Connect as soon as it is announced. Routers of releases before 2.0 refuse the tokens of such sessions, or do not
// judge their policies, so by default one enrolled router of such a release keeps it from being announced.
import type { Kysely } from 'kysely'
import { supportsOidc } from '../../access/router-releases.ts'
import type { VersionInfo } from '../../definitions/resources/routers.ts'
import type { Database } from '../../storage/database.ts'
import type { Commit } from '../../storage/transactions/changes.ts'
import type { DerivedRows } from '../../storage/transactions/projection.ts'

export class OidcAnnouncement implements DerivedRows {
  readonly kind = 'derived rows'
  readonly name = 'announcement of OpenID Connect'
  /** The value of the setting. */
  readonly mode: 'auto' | 'always' | 'never'
  /** Each router that has enrolled, and whether it supports sessions of OpenID Connect. */
  #support = new Map<string, boolean>()
  #unsupportingCount = 0
  readonly #listeners: (() => void)[] = []

  constructor(mode: 'auto' | 'always' | 'never') {
    this.mode = mode
  }

  /** Whether clients are told. */
  get isActive(): boolean {
    return this.mode === 'always' || (this.mode === 'auto' && this.#unsupportingCount === 0)
  }

  /** Has a listener called after each change of whether clients are told. */
  onChange(listener: () => void): void {
    this.#listeners.push(listener)
  }

  /** Whether a router supports sessions of OpenID Connect; undefined if it has not enrolled. */
  isSupportedBy(routerId: string): boolean | undefined {
    return this.#support.get(routerId)
  }

  /** The ids of the enrolled routers that do not support sessions of OpenID Connect. */
  listUnsupporting(): string[] {
    return [...this.#support].filter(([, isSupported]) => !isSupported).map(([id]) => id)
  }

  /** Whether any enrolled router supports sessions of OpenID Connect. */
  get hasSupporting(): boolean {
    return this.#support.size > this.#unsupportingCount
  }

  async rebuild(db: Kysely<Database>): Promise<void> {
    const rows = await db.selectFrom('routers').select(['id', 'lastVersion']).where('isVerified', '=', 1).execute()
    this.#support = new Map(
      rows.map(({ id, lastVersion }) => [
        id,
        supportsOidc(lastVersion === null ? null : (JSON.parse(lastVersion) as VersionInfo)),
      ]),
    )
    this.#unsupportingCount = this.listUnsupporting().length
  }

  apply({ changes }: Commit): void {
    const wasActive = this.isActive
    for (const { resource, id, after } of changes) {
      if (resource !== 'edge-routers' && resource !== 'routers') continue
      if (this.#support.get(id) === false) this.#unsupportingCount--
      if (!after?.isVerified) {
        this.#support.delete(id)
        continue
      }
      const isSupported = supportsOidc(after.lastVersion)
      this.#support.set(id, isSupported)
      if (!isSupported) this.#unsupportingCount++
    }
    if (this.isActive !== wasActive) for (const listener of this.#listeners) listener()
  }
}
