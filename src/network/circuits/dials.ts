// Dials of clients, as edge routers hand them on: decides whether the session permits it, and creates the circuit.
import type { Kysely } from 'kysely'
import type { TerminatorStrategy } from '../../definitions/resources/services.ts'
import type { Database } from '../../storage/database.ts'
import { prepareQuery } from '../../storage/prepared-queries.ts'
import { RequestRefusedError } from '../client-requests/request-refused.ts'
import { MAX_INSTANCE_ID_LENGTH, type SessionClient } from '../client-requests/session-client.ts'
import {
  type IdentifiedClient,
  identifyClient,
  type RightParts,
  requireSessionRight,
} from '../client-requests/session-right.ts'
import { isPeerDataTooLong, type PeerData } from '../routers/router-connection.ts'
import { findHostPrograms, waitsForClient } from './abandoned-dials.ts'
import type { CreatedCircuit, DialedService } from './circuit-creation.ts'
import type { Circuits } from './circuits.ts'

/**
 * Kept by a router that was connected to no controller, or to others than this one; or on its way over a connection that was held up.
 */
export type WaitingPlace = 'kept' | 'kept for one controller' | 'on its way'

/** The dial of a client that is connected to a router. */
export interface DialRequest extends SessionClient {
  /** Selects the terminators that have exactly this instance id; empty for those without one. */
  readonly instanceId: string
  /** Data of the client for the host. */
  readonly peerData: PeerData
  /** The place at which it may have waited for longer than its client does. */
  readonly mayHaveWaited?: WaitingPlace | undefined
}

/** In peer data: the public key by which one end encrypts. */
const PUBLIC_KEY = 1003

interface ServiceRow extends DialedService {
  readonly encryptionRequired: number
  readonly terminatorStrategy: TerminatorStrategy
}

const findServiceById = prepareQuery<[id: string], ServiceRow>((db, id) =>
  db
    .selectFrom('services')
    .select(['id', 'encryptionRequired', 'maxIdleTimeMillis', 'terminatorStrategy'])
    .where('id', '=', id),
)

interface DialsParts extends RightParts {
  readonly db: Kysely<Database>
  readonly circuits: Circuits
  /** Whether rights may be granted: one of several controllers has to be in contact with the others. */
  readonly mayGrant: () => boolean
}

export class Dials {
  readonly #parts: DialsParts

  constructor(parts: DialsParts) {
    this.#parts = parts
  }

  /**
   * Connects a client with a service that its session permits it to dial.
   * @throws RequestRefusedError, and CircuitError if the service cannot be reached
   */
  async dial(request: DialRequest): Promise<CreatedCircuit> {
    const { db, circuits, mayGrant } = this.#parts
    const { routerId, instanceId, peerData } = request
    if (instanceId.length > MAX_INSTANCE_ID_LENGTH || isPeerDataTooLong(peerData))
      throw new RequestRefusedError('other', 'the instance id or the peer data are too long')
    const client = await identifyClient(this.#parts, db, request)
    const { sessionId, identity, identityName, serviceId } = await this.#requireRight(client)
    const [service] = await findServiceById(db, serviceId)
    if (!service) throw new RequestRefusedError('unknown-service', 'the service does not exist')
    const { mayHaveWaited } = request
    // Routers hand on a dial by OpenID Connect to any controller that they are connected to.
    const isHandedOn = mayHaveWaited === 'kept for one controller' && client.signedApiSessionId !== undefined
    const mayBeAbandoned = mayHaveWaited !== undefined && !isHandedOn
    if (mayBeAbandoned && (await findHostPrograms(db, serviceId)).some(waitsForClient))
      throw new RequestRefusedError('busy', 'the dial waited at its router until that reached a controller')
    const isEncrypted = service.encryptionRequired === 1
    if (isEncrypted) requireKey(peerData, 'client')
    const isSessionSigned = 'signed' in client.reference
    const dialer = { routerId, clientId: identity.id, clientName: identityName, sessionId, isSessionSigned }
    const created = await circuits.create({ ...dialer, service, instanceId, peerData })
    try {
      if (isEncrypted) requireKey(created.peerData, 'host')
      // The right may have been revoked while the routers worked.
      await this.#requireRight(client)
      if (!mayGrant()) throw new RequestRefusedError('busy', 'the controller has no contact with the other ones')
      return created
    } catch (error) {
      circuits.remove(created.circuit.id, true)
      throw error
    }
  }

  #requireRight(client: IdentifiedClient) {
    return requireSessionRight(this.#parts, this.#parts.db, { ...client, type: 'Dial' })
  }
}

/** @throws RequestRefusedError */
function requireKey(peerData: PeerData, sender: 'client' | 'host'): void {
  if (peerData.has(PUBLIC_KEY)) return
  const message = `the service requires encryption, and the ${sender} sent no key`
  throw new RequestRefusedError('encryption-data-missing', message)
}
