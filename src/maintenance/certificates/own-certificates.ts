// The controller's own certificates while it runs: they are renewed and rotated here, and its records follow.
import type { X509Certificate } from 'node:crypto'
import { type CertificateKind, certificates } from '../../definitions/resources/certificates.ts'
import type { Instant } from '../../foundation/clock.ts'
import { errors } from '../../foundation/errors.ts'
import type { Log } from '../../foundation/log.ts'
import type { ControllerMembership } from '../../network/controllers/membership.ts'
import type { Authority } from '../../pki/authority.ts'
import { computeFingerprint, computeFingerprint256, isHostOf, listNamedHosts } from '../../pki/certificates.ts'
import { isSelfSigned } from '../../pki/chains.ts'
import { KeyFileError } from '../../pki/files.ts'
import { isTrialUnderWay } from '../../pki/trial.ts'
import { listCertificateHosts } from '../../settings/addresses.ts'
import type { Config } from '../../settings/settings.ts'
import type { FileContents, SharedFiles } from '../../storage/cluster/shared-files.ts'
import { type EntityStore, newEntity } from '../../storage/entities/entities.ts'
import type { Context, WriteContext } from '../../storage/transactions/context.ts'
import { toCertificateEntry } from './inventory.ts'
import type { RootReceipts } from './root-receipts.ts'
import { reportMissingRoot } from './root-reports.ts'

interface OwnCertificatesParts {
  readonly authority: Authority
  readonly config: Config
  readonly entities: EntityStore
  readonly membership: ControllerMembership
  readonly receipts: RootReceipts
  readonly log: Log
  /** Of a cluster, whose controllers have the same certificates. */
  readonly shared?: SharedFiles | undefined
}

/** A certificate of the controller, as the inventory shows it. */
interface OwnCertificate {
  readonly kind: CertificateKind
  readonly certificate: X509Certificate
  readonly isCurrent: boolean
}

// They are read from files, not from a record.
const OWN_SOURCE = 'own'

/**
 * Each change replaces the files first and then writes to the database: the inventory, whose changes are audited here, and the
 * record of the controller. If the process is killed in between, the next start writes them. In a cluster the files are committed
 * before, and every controller replaces its own by what is committed.
 */
export class OwnCertificates {
  readonly #authority: Authority
  readonly #entities: EntityStore
  readonly #membership: ControllerMembership
  readonly #receipts: RootReceipts
  readonly #log: Log
  readonly #shared: SharedFiles | undefined
  readonly #ownHosts: readonly string[]
  readonly #trialEnds: Instant | undefined

  constructor({ authority, config, entities, membership, receipts, log, shared }: OwnCertificatesParts) {
    this.#log = log
    this.#authority = authority
    this.#entities = entities
    this.#membership = membership
    this.#receipts = receipts
    this.#shared = shared
    this.#ownHosts = listCertificateHosts(config)
    this.#trialEnds = config['adoption.trialEnds']
  }

  /**
   * Renews what expires soon, lacks a host, or was interrupted. Returns the names of what was renewed.
   * @throws ROOT_KEY_MISSING if the key of the root is required and not in the data directory
   */
  async renewDue(context: Context): Promise<readonly string[]> {
    try {
      return await this.#change(context, (authority) =>
        authority.renewDue(this.#hosts, context.clock.now(), this.#trialEnds),
      )
    } finally {
      await this.publish(context)
    }
  }

  /** Renews the server certificate now. */
  async renewServer(context: Context): Promise<void> {
    await this.#change(context, (authority) => authority.renewServer(this.#hosts, context.clock.now()))
    await this.publish(context)
  }

  /** Replaces the intermediate. @throws ADOPTION_ON_TRIAL, ROOT_KEY_MISSING */
  async rotateIntermediate(context: Context): Promise<void> {
    this.#requireNoTrial(context)
    await this.#change(context, (authority) => authority.rotateIntermediate(this.#hosts, context.clock.now()))
    await this.publish(context)
  }

  /** Begins the replacement of the root. @throws ADOPTION_ON_TRIAL, ROOT_ROTATION_UNDER_WAY, ROOT_KEY_MISSING */
  async rotateRoot(context: Context): Promise<void> {
    this.#requireNoTrial(context)
    await this.#change(context, (authority) => authority.rotateRoot(this.#hosts, context.clock.now()))
    await this.publish(context)
    this.#log.info(this.#describeRoots(), 'the replacement of the root has begun')
    await reportMissingRoot(this.#log, context, this.#receipts)
  }

  /**
   * Ends the replacement of the root.
   * @param isForced whether to end it although some identities or routers have not fetched the new root
   * @throws NO_ROOT_ROTATION, ROOT_BUNDLE_NOT_FETCHED
   */
  async finishRootRotation(context: Context, isForced: boolean): Promise<void> {
    if (!this.#authority.previousRoot) throw errors.NO_ROOT_ROTATION()
    const missing = await this.#receipts.countMissing(context.db)
    if (missing > 0 && !isForced) {
      throw errors.ROOT_BUNDLE_NOT_FETCHED({ code: 'ROOT_BUNDLE_NOT_FETCHED', message: `${missing} without it` })
    }
    const roots = this.#describeRoots()
    await this.#change(context, (authority) => authority.finishRootRotation(context.clock.now()))
    await context.write((tx) => this.#receipts.clear(tx))
    await this.publish(context)
    this.#log.info({ ...roots, totalMissing: missing }, 'the replacement of the root has ended')
  }

  /** The names that the server certificate gets. That of a cluster has those of all its controllers. */
  get #hosts(): readonly string[] {
    const { certificate } = this.#authority.server
    if (!this.#shared) return this.#ownHosts
    return [...listNamedHosts(certificate), ...this.#ownHosts.filter((host) => !isHostOf(certificate, host))]
  }

  /** Changes the authority: in its files, or in those that all controllers share. */
  async #change<T>(context: Context, work: (authority: Authority) => T): Promise<T> {
    const shared = this.#shared
    if (!shared) return withKeyErrors(() => work(this.#authority))
    // Tried first, because mostly nothing is due, and then there is nothing to commit.
    const trial = this.#draft(work)
    if (trial.contents.size === 0) return trial.finish()
    const { finish } = await context.write(async (tx) => {
      const draft = this.#draft(work)
      await shared.store(this.#entities, tx, draft.contents)
      return draft
    })
    return finish()
  }

  /** The contents that `work` changes, and its result or its error: it may have renewed a part before it failed. */
  #draft<T>(work: (authority: Authority) => T): { readonly contents: FileContents; readonly finish: () => T } {
    const { authority, contents } = this.#authority.draft()
    try {
      const result = withKeyErrors(() => work(authority))
      return { contents: toSharedNames(contents), finish: () => result }
    } catch (error) {
      return {
        contents: toSharedNames(contents),
        finish: () => {
          throw error
        },
      }
    }
  }

  #requireNoTrial({ clock }: Context): void {
    if (isTrialUnderWay(this.#trialEnds, clock.now())) throw errors.ADOPTION_ON_TRIAL()
  }

  #describeRoots() {
    const { root, previousRoot } = this.#authority
    const previousFingerprint = previousRoot && computeFingerprint256(previousRoot)
    return { fingerprint: computeFingerprint256(root), previousFingerprint }
  }

  /** Writes the certificates in use to the inventory and to the record of the controller, if they differ. */
  async publish(context: Context): Promise<void> {
    await context.write(async (tx) => this.#updateInventory(tx))
    await this.#membership.updateCertificate(context)
  }

  async #updateInventory(tx: WriteContext): Promise<void> {
    const rows = await tx.db
      .selectFrom('certificates')
      .select(['id', 'fingerprint', 'isCurrent'])
      .where('sourceId', '=', OWN_SOURCE)
      .execute()
    const current = this.#list().map((own) => ({ ...own, fingerprint: computeFingerprint(own.certificate) }))
    const isListed = (row: (typeof rows)[number]) =>
      current.some(
        ({ fingerprint, isCurrent }) => fingerprint === row.fingerprint && isCurrent === (row.isCurrent === 1),
      )
    for (const row of rows) {
      if (!isListed(row)) await this.#entities.removeInTransaction(tx, certificates, row.id, 'values')
    }
    for (const { kind, certificate, isCurrent, fingerprint } of current) {
      if (rows.some((row) => isListed(row) && row.fingerprint === fingerprint)) continue
      const values = { ...toCertificateEntry(certificate), kind, isCurrent, holderId: null, sourceId: OWN_SOURCE }
      await this.#entities.insert(tx, certificates, newEntity(tx, certificates, values), { audit: 'values' })
    }
  }

  #list(): OwnCertificate[] {
    const { root, previousRoot, intermediate, server, former } = this.#authority
    return [
      { kind: 'root', certificate: root, isCurrent: true },
      ...(previousRoot ? [{ kind: 'root', certificate: previousRoot, isCurrent: true } as const] : []),
      { kind: 'intermediate', certificate: intermediate.certificate, isCurrent: true },
      { kind: 'server', certificate: server.certificate, isCurrent: true },
      ...former.map((certificate) => {
        const kind: CertificateKind = isSelfSigned(certificate) ? 'root' : 'intermediate'
        return { kind, certificate, isCurrent: false }
      }),
    ]
  }
}

function toSharedNames(contents: ReadonlyMap<string, string>): FileContents {
  return new Map([...contents].map(([name, content]) => [`pki/${name}`, content]))
}

/** An operator may keep the key of the root elsewhere: then that is the reason, and nothing is wrong with the controller. */
function withKeyErrors<T>(work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (error instanceof KeyFileError) throw errors.ROOT_KEY_MISSING(undefined, { cause: error })
    throw error
  }
}
