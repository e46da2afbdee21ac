// The daily care for certificates: what the controller can renew is renewed.
import type { Instant } from '../clock.ts'
import type { Context } from '../context.ts'
import type { Log } from '../log.ts'
import type { OwnCertificates } from './own-certificates.ts'

const DAY_MS = 24 * 60 * 60 * 1000

export class CertificateUpkeep {
  readonly #own: OwnCertificates
  readonly #log: Log
  #lastRunAt: Instant | undefined

  constructor(own: OwnCertificates, log: Log) {
    this.#own = own
    this.#log = log
  }

  /** Runs at the first call, and after that once a day by the clock of the context, also if that was set back. */
  async runIfDue(context: Context): Promise<void> {
    const now = context.clock.now()
    if (this.#lastRunAt !== undefined && Math.abs(now - this.#lastRunAt) < DAY_MS) return
    this.#lastRunAt = now
    await this.#renew(context)
  }

  /** A renewal that fails is tried again the next day: there are months left. */
  async #renew(context: Context): Promise<void> {
    try {
      const renewed = await this.#own.renewDue(context)
      if (renewed.length > 0) this.#log.info({ renewed }, 'certificates of the controller were renewed')
    } catch (error) {
      this.#log.error({ err: error }, 'the certificates of the controller could not be renewed')
    }
  }
}
