// A connection to the database of a shared log, which is made on demand, and again after it has failed.
import pg, { type Client } from 'pg'
import { describeSystemError } from '../../foundation/system-errors.ts'

/** The place of the log, and the proof that a controller may use it. */
export interface LogDatabase {
  /** Such as postgres://user@host/name; of several hosts with commas between them, the primary is used. Without a password. */
  readonly url: string
  readonly password?: string | undefined
  /** Certificates of the authorities that its server certificate leads to, PEM; otherwise those of the system. */
  readonly ca?: string | undefined
  /** Without TLS, for a database on the same machine. */
  readonly isPlain?: boolean
  /** How long a response may take, in milliseconds. */
  readonly responseTimeoutMs?: number
}

const CONNECT_TIMEOUT_MS = 5_000
// Longer than a lock is waited for.
const RESPONSE_TIMEOUT_MS = 10_000
const BIGINT_OID = 20

/** No host is the primary of the database, or none can be reached. */
export class LogConnectionError extends Error {
  override readonly name = 'LogConnectionError'
}

export class LogConnection {
  readonly #database: LogDatabase
  #client: Promise<Client> | undefined

  constructor(database: LogDatabase) {
    this.#database = database
  }

  /** The connection; a new one if there is none, or the last one ended. @throws LogConnectionError */
  open(): Promise<Client> {
    if (!this.#client) {
      const client = this.#connect()
      this.#client = client
      client.catch(() => this.#forgetIf(client))
    }
    return this.#client
  }

  /** Runs queries. If one fails, the connection ends: what state it is in is not certain. */
  async run<T>(work: (client: Client) => Promise<T>): Promise<T> {
    try {
      return await work(await this.open())
    } catch (error) {
      this.end()
      throw error
    }
  }

  /** Ends the connection, without waiting for queries in progress. */
  end(): void {
    const client = this.#client
    this.#client = undefined
    client?.then(destroy, () => undefined)
  }

  #forgetIf(client: Promise<Client>): void {
    if (this.#client === client) this.#client = undefined
  }

  async #connect(): Promise<Client> {
    const problems: string[] = []
    let cause: unknown
    for (const url of listHosts(this.#database.url)) {
      const client = this.#createClient(url)
      try {
        await client.connect()
        const { rows } = await client.query<{ isReplica: boolean }>('select pg_is_in_recovery() as "isReplica"')
        if (!rows[0]?.isReplica) return client
        problems.push(`${new URL(url).host} is a replica, which takes no commits`)
      } catch (error) {
        problems.push(`${new URL(url).host}: ${this.#describe(error as Error)}`)
        cause = error
      }
      destroy(client)
    }
    throw new LogConnectionError(problems.join('; '), { cause })
  }

  /** The driver names the message of the protocol, and not what is missing. */
  #describe(error: Error): string {
    const isPasswordMissing =
      this.#database.password === undefined && error.message.includes('client password must be a string')
    return isPasswordMissing ? 'it requires a password, and there is none' : describeSystemError(error)
  }

  #createClient(url: string): Client {
    const { password, ca, isPlain, responseTimeoutMs = RESPONSE_TIMEOUT_MS } = this.#database
    const client = new pg.Client({
      connectionString: withPassword(url, password),
      ssl: isPlain ? false : { rejectUnauthorized: true, ...(ca === undefined ? {} : { ca }) },
      application_name: 'edge-controller',
      connectionTimeoutMillis: Math.min(CONNECT_TIMEOUT_MS, responseTimeoutMs),
      query_timeout: responseTimeoutMs,
      keepAlive: true,
      pipeline: true,
      types: { getTypeParser: findTypeParser },
    })
    // Without a listener it would end the process. The queries in progress fail by themselves.
    client.on('error', () => destroy(client))
    client.on('end', () => {
      const current = this.#client
      current?.then(
        (last) => last === client && this.#forgetIf(current),
        () => undefined,
      )
    })
    return client
  }
}

/** Works with a connection of its own, which ends afterwards: for what is done a few times an hour. */
export async function withLogConnection<T>(
  database: LogDatabase,
  work: (connection: LogConnection) => Promise<T>,
): Promise<T> {
  const connection = new LogConnection(database)
  try {
    return await work(connection)
  } finally {
    connection.end()
  }
}

/** Positions stay far below 2^53. */
const findTypeParser: typeof pg.types.getTypeParser = (oid: number, format?: 'text' | 'binary') =>
  oid === BIGINT_OID ? Number : pg.types.getTypeParser(oid, format as 'text')

/** One URL for each host. */
function listHosts(url: string): string[] {
  const [, scheme, user = '', hosts = '', path = ''] = /^(postgres(?:ql)?:\/\/)([^/@]*@)?([^/?]*)(.*)$/s.exec(url) ?? []
  if (scheme === undefined) throw new LogConnectionError('the URL of the database does not begin with postgres://')
  return hosts.split(',').map((host) => `${scheme}${user}${host}${path}`)
}

/** In the URL, because the driver takes one without a password for one with an empty one, whatever else it is given. */
function withPassword(url: string, password: string | undefined): string {
  if (password === undefined) return url
  const target = new URL(url)
  target.password = encodeURIComponent(password)
  return target.href
}

function destroy(client: Client): void {
  const { stream } = client.connection
  stream.destroy()
}
