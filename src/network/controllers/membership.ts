// This controller as one of the controllers of the network: the record by which clients and administrators know it.
import type { Kysely } from 'kysely'
import { type ApiAddresses, controllers } from '../../definitions/resources/controllers.ts'
import type { Authority } from '../../pki/authority.ts'
import { computeFingerprint, computePublicKeyPrint, toCertificatePem } from '../../pki/certificates.ts'
import {
  getAdvertisedAddress,
  getControlAddress,
  hasOwnControlListener,
  listAdvertisedAddresses,
} from '../../settings/addresses.ts'
import { invalidSettingError } from '../../settings/config.ts'
import { splitAddress } from '../../settings/setting-types.ts'
import type { Config } from '../../settings/settings.ts'
import type { Database } from '../../storage/database.ts'
import { type EntityStore, get, newEntity } from '../../storage/entities/entities.ts'
import type { Context, WriteContext } from '../../storage/transactions/context.ts'

interface MembershipParts {
  readonly entities: EntityStore
  readonly config: Config
  readonly authority: Authority
  /** The name of this controller in its cluster; undefined if it is alone. */
  readonly node: string | undefined
  /** Whether a node of the cluster runs, at the last contact. */
  readonly isLive: (node: string) => boolean
}

type OwnKeys = Pick<MembershipParts, 'authority' | 'node'>

export class ControllerMembership {
  readonly #parts: MembershipParts
  #ownId: string | undefined

  private constructor(parts: MembershipParts, ownId: string | undefined) {
    this.#parts = parts
    this.#ownId = ownId
  }

  static async load({ db, ...parts }: MembershipParts & { db: Kysely<Database> }): Promise<ControllerMembership> {
    return new ControllerMembership(parts, await findOwnId(db, parts))
  }

  /** The id of this controller's own record; undefined until it is announced for the first time. */
  get ownId(): string | undefined {
    return this.#ownId
  }

  /**
   * The id by which routers that are connected to one controller at a time know it; undefined until it is announced. The controllers of a
   * cluster have the same one, that of the first of them: otherwise such a router would take the next one for a second controller.
   */
  async findSharedId(db: Kysely<Database>): Promise<string | undefined> {
    if (this.#parts.node === undefined) return this.#ownId
    const first = db.selectFrom('controllers').select('id').where('node', 'is not', null).orderBy('n')
    return (await first.executeTakeFirst())?.id
  }

  /** Whether the controller of a record runs, as far as this one knows. @param node its name in the cluster; null if it is alone */
  isOnline(id: string, node: unknown): boolean {
    return (
      id === this.#ownId || (typeof node === 'string' && this.#parts.node !== undefined && this.#parts.isLive(node))
    )
  }

  /**
   * Stores that this controller has joined, with its addresses and its certificate.
   * @throws ConfigError if routers would reach another controller of the cluster by the same address
   */
  async announce(context: Context, apiPaths: Readonly<Record<string, string>>): Promise<void> {
    const { entities, config, authority, node } = this.#parts
    const address = getAdvertisedAddress(config)
    const values = {
      name: node ?? splitAddress(address).host,
      // Routers that are connected to one controller at a time find it by a name that is not its own.
      ctrlAddress: node === undefined || hasOwnControlListener(config) ? getControlAddress(config) : null,
      servedAddresses: toApiAddresses(config, apiPaths),
      ...toCertificateValues(authority),
      publicKeyPrint: computePublicKeyPrint(authority.server.certificate),
      node: node ?? null,
      lastJoinedAt: context.clock.now(),
    }
    this.#ownId = await context.write(async (tx) => {
      // Read again, because another controller may have changed it meanwhile.
      const ownId = await findOwnId(tx.db, this.#parts)
      if (node === undefined) await this.#removeFormerNodes(tx, ownId)
      else if (values.ctrlAddress !== null) await this.#takeAddress(tx, values.ctrlAddress, ownId)
      if (ownId === undefined) return (await entities.insert(tx, controllers, newEntity(tx, controllers, values))).id
      return (await entities.update(tx, controllers, await get(tx, controllers, ownId), values, { audit: 'none' })).id
    })
  }

  /** Makes the record that this controller has from when it was alone that of a node of its cluster. */
  async claim(tx: WriteContext): Promise<void> {
    const { entities, node = null } = this.#parts
    if (this.#ownId !== undefined || node === null) return
    const id = await findOwnId(tx.db, { ...this.#parts, node: undefined })
    if (id === undefined) return
    await entities.update(tx, controllers, await get(tx, controllers, id), { node, name: node }, { audit: 'none' })
    this.#ownId = id
  }

  /** Takes an address from a controller that had it and does not run, so that each has its own. @throws ConfigError if that one runs */
  async #takeAddress(tx: WriteContext, address: string, ownId = ''): Promise<void> {
    const { config, entities, isLive } = this.#parts
    const others = tx.db.selectFrom('controllers').select(['id', 'node']).where('node', 'is not', null)
    for (const { id, node } of await others.where('ctrlAddress', '=', address).where('id', '!=', ownId).execute()) {
      const reason = `is where routers reach the controller ${node}, too: each has its own, and control.shared is one for all`
      if (isLive(String(node))) throw invalidSettingError(config, 'control.advertise', reason)
      await entities.update(tx, controllers, await get(tx, controllers, id), { ctrlAddress: null }, { audit: 'none' })
    }
  }

  /** Removes the records of a cluster that this controller has left. */
  async #removeFormerNodes(tx: WriteContext, ownId: string | undefined): Promise<void> {
    for (const id of await listNodes(tx))
      if (id !== ownId) await this.#parts.entities.removeInTransaction(tx, controllers, id, 'none')
  }

  /** Writes the server certificate to the record of this controller, once it has one. */
  async updateCertificate(context: Context): Promise<void> {
    const ownId = this.#ownId
    if (ownId === undefined) return
    const { authority, entities, node } = this.#parts
    await context.write(async (tx) => {
      const values = toCertificateValues(authority)
      // The controllers of a cluster have one certificate.
      const ids = node === undefined ? [ownId] : await listNodes(tx)
      for (const id of ids) {
        const record = await get(tx, controllers, id)
        if (record.fingerprint !== values.fingerprint)
          await entities.update(tx, controllers, record, values, { audit: 'none' })
      }
    })
  }
}

/** By its name in the cluster; alone by the key of its certificates, first a record that is of no cluster. */
async function findOwnId(db: Kysely<Database>, { authority, node }: OwnKeys): Promise<string | undefined> {
  const records = db.selectFrom('controllers').select('id')
  const named = records.where('node', '=', node ?? '')
  const keyed = records.where('publicKeyPrint', '=', computePublicKeyPrint(authority.server.certificate))
  const own = node === undefined ? keyed.orderBy('node').orderBy('n') : named
  return (await own.executeTakeFirst())?.id
}

async function listNodes({ db }: WriteContext): Promise<string[]> {
  const nodes = await db.selectFrom('controllers').select('id').where('node', 'is not', null).execute()
  return nodes.map(({ id }) => id)
}

function toCertificateValues({ server: { certificate } }: Authority) {
  return { certPem: toCertificatePem(certificate), fingerprint: computeFingerprint(certificate) }
}

/** The addresses of each API, in the order in which they are advertised. */
function toApiAddresses(config: Config, apiPaths: Readonly<Record<string, string>>): ApiAddresses {
  const bases = listAdvertisedAddresses(config).map((address) => `https://${address}`)
  const toAddresses = (path: string) => bases.map((base) => ({ url: base + path, version: 'v1' }))
  return Object.fromEntries(Object.entries(apiPaths).map(([api, path]) => [api, toAddresses(path)]))
}
