// The daily care for certificates: what the controller can renew is renewed, and what ends soon is reported.
import { certificates } from '../../definitions/resources/certificates.ts'
import { type Instant, toIsoTime } from '../../foundation/clock.ts'
import type { Log } from '../../foundation/log.ts'
import type { Authority } from '../../pki/authority.ts'
import { isRootDue } from '../../pki/authority-certificates.ts'
import type { Context } from '../../storage/transactions/context.ts'
import type { EventFeed } from '../events/event-feed.ts'
import type { CertificateBehavior } from './certificate-behavior.ts'
import type { OwnCertificates } from './own-certificates.ts'
import type { RootReceipts } from './root-receipts.ts'
import { reportMissingRoot } from './root-reports.ts'

const DAY_MS = 24 * 60 * 60 * 1000

// A network that enrolled thousands on one day must not fill the log.
const MAX_WARNINGS = 100

function findEnding({ db }: Context, from: Instant, to: Instant) {
  return db
    .selectFrom('certificates')
    .select(['id', 'kind', 'subject', 'fingerprint', 'holderId', 'notBefore', 'notAfter'])
    .where('notAfter', '>', from)
    .where('notAfter', '<=', to)
    .orderBy('notAfter')
    .limit(MAX_WARNINGS + 1)
    .execute()
}

interface UpkeepParts {
  readonly authority: Authority
  readonly own: OwnCertificates
  readonly receipts: RootReceipts
  readonly behavior: CertificateBehavior
  readonly events: EventFeed
  readonly log: Log
  /** How long before its end a certificate is reported. */
  readonly warnBeforeMs: number
}

export class CertificateUpkeep {
  readonly #parts: UpkeepParts
  #lastRunAt: Instant | undefined

  constructor(parts: UpkeepParts) {
    this.#parts = parts
  }

  /** Runs at the first call, and after that once a day by the clock of the context, also if that was set back. */
  async runIfDue(context: Context): Promise<void> {
    const now = context.clock.now()
    if (this.#lastRunAt !== undefined && Math.abs(now - this.#lastRunAt) < DAY_MS) return
    this.#lastRunAt = now
    await this.#renew(context)
    await reportMissingRoot(this.#parts.log, context, this.#parts.receipts)
    await this.#warn(context, now)
  }

  /** A renewal that fails is tried again the next day: there are months left. */
  async #renew(context: Context): Promise<void> {
    const { own, log } = this.#parts
    try {
      const renewed = await own.renewDue(context)
      if (renewed.length > 0) log.info({ renewed }, 'certificates of the controller were renewed')
    } catch (error) {
      log.error({ err: error }, 'the certificates of the controller could not be renewed')
    }
  }

  /** Reports each certificate that ends soon, and those that ended since yesterday. */
  async #warn(context: Context, now: Instant): Promise<void> {
    const { authority, behavior, events, log, warnBeforeMs } = this.#parts
    if (isRootDue(authority.root, now)) {
      const notAfter = authority.root.validTo
      log.warn({ notAfter }, 'the root certificate is in the last third of its life: controller pki rotate root')
    }
    const rows = await findEnding(context, now - DAY_MS, now + warnBeforeMs)
    const endingRows = rows.slice(0, MAX_WARNINGS)
    const computed = await behavior.computeFields(context, endingRows)
    endingRows.forEach((row, at) => {
      const { id, kind, holderId, subject, fingerprint } = row
      const holder = computed[at]?.holderName ?? undefined
      const hasExpired = row.notAfter <= now
      const details = { kind, holder, subject, fingerprint, notAfter: toIsoTime(row.notAfter) }
      log.warn(details, hasExpired ? 'a certificate has expired' : 'a certificate expires soon')
      const type = hasExpired ? 'certificate-expired' : 'certificate-expiring'
      const related = holderId === null ? [] : [holderId]
      events.add({ type, resource: certificates.plural, id, related, details })
    })
    if (rows.length > MAX_WARNINGS)
      log.warn({}, 'more certificates expire soon: controller certificate list --expiring')
  }
}
