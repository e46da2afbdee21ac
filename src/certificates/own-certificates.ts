// The controller's own certificates while it runs: they are renewed and rotated here, and its records follow.
import { type Config, listCertificateHosts } from '../config.ts'
import type { Context } from '../context.ts'
import type { ControllerMembership } from '../controllers/membership.ts'
import type { Authority } from '../pki/authority.ts'

interface Parts {
  readonly authority: Authority
  readonly config: Config
  readonly membership: ControllerMembership
}

export class OwnCertificates {
  readonly #authority: Authority
  readonly #membership: ControllerMembership
  readonly #hosts: readonly string[]

  constructor({ authority, config, membership }: Parts) {
    this.#authority = authority
    this.#membership = membership
    this.#hosts = listCertificateHosts(config)
  }

  /**
   * Renews what expires soon, lacks a host, or was interrupted. Returns the names of what was renewed.
   * @throws KeyFileError if the key of the root is required and not in the data directory
   */
  async renewDue(context: Context): Promise<readonly string[]> {
    const renewed = this.#authority.renewDue(this.#hosts, context.clock.now())
    if (renewed.length > 0) await this.publish(context)
    return renewed
  }

  /** Writes the certificates in use to the records of the controller. */
  async publish(context: Context): Promise<void> {
    await this.#membership.updateCertificate(context)
  }
}
