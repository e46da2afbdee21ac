// This controller as one of the controllers of the network: the record by which clients and administrators know it.
import type { Kysely } from 'kysely'
import { type ApiAddresses, controllers } from '../../definitions/resources/controllers.ts'
import type { Authority } from '../../pki/authority.ts'
import { computeFingerprint, computePublicKeyPrint, toCertificatePem } from '../../pki/certificates.ts'
import { type Config, getAdvertisedAddress, getControlAddress, splitAddress } from '../../settings/config.ts'
import type { Database } from '../../storage/database.ts'
import { type EntityStore, get, newEntity } from '../../storage/entities/entities.ts'
import type { Context } from '../../storage/transactions/context.ts'

export class ControllerMembership {
  readonly #entities: EntityStore
  readonly #config: Config
  readonly #authority: Authority
  #ownId: string | undefined

  private constructor(entities: EntityStore, config: Config, authority: Authority, ownId: string | undefined) {
    this.#entities = entities
    this.#config = config
    this.#authority = authority
    this.#ownId = ownId
  }

  static async load(
    db: Kysely<Database>,
    entities: EntityStore,
    config: Config,
    authority: Authority,
  ): Promise<ControllerMembership> {
    const own = await db
      .selectFrom('controllers')
      .select('id')
      .where('publicKeyPrint', '=', computePublicKeyPrint(authority.server.certificate))
      .executeTakeFirst()
    return new ControllerMembership(entities, config, authority, own?.id)
  }

  /** The id of this controller's own record; undefined until it is announced for the first time. */
  get ownId(): string | undefined {
    return this.#ownId
  }

  /** Stores that this controller has joined, with its addresses and its certificate. */
  async announce(context: Context, apiPaths: Readonly<Record<string, string>>): Promise<void> {
    const values = {
      name: splitAddress(getAdvertisedAddress(this.#config)).host,
      ctrlAddress: getControlAddress(this.#config),
      apiAddresses: toApiAddresses(`https://${getAdvertisedAddress(this.#config)}`, apiPaths),
      ...toCertificateValues(this.#authority),
      lastJoinedAt: context.clock.now(),
    }
    this.#ownId = await context.write(async (tx) => {
      if (this.#ownId !== undefined) {
        const own = await get(tx, controllers, this.#ownId)
        return (await this.#entities.update(tx, controllers, own, values, { audit: 'none' })).id
      }
      const own = { ...values, publicKeyPrint: computePublicKeyPrint(this.#authority.server.certificate) }
      return (await this.#entities.insert(tx, controllers, newEntity(tx, controllers, own))).id
    })
  }

  /** Writes the server certificate to the record of this controller, once it has one. */
  async updateCertificate(context: Context): Promise<void> {
    const ownId = this.#ownId
    if (ownId === undefined) return
    await context.write(async (tx) => {
      const own = await get(tx, controllers, ownId)
      const values = toCertificateValues(this.#authority)
      if (own.fingerprint === values.fingerprint) return
      await this.#entities.update(tx, controllers, own, values, { audit: 'none' })
    })
  }
}

function toCertificateValues({ server: { certificate } }: Authority) {
  return { certPem: toCertificatePem(certificate), fingerprint: computeFingerprint(certificate) }
}

/** The addresses of each API. */
function toApiAddresses(base: string, apiPaths: Readonly<Record<string, string>>): ApiAddresses {
  return Object.fromEntries(Object.entries(apiPaths).map(([api, path]) => [api, [{ url: base + path, version: 'v1' }]]))
}
