// Signs in to a controller by any primary factor, and presents second factors.
import type { ClientCertificate } from '../../src/client/http-transport.ts'
import type { Transport } from '../../src/client/transport.ts'
import { RequestError } from '../foundation/request-error.ts'
import { Client, EITHER_PATH } from './client.ts'

/** A primary factor. The transport presents the certificate, and carries the external JWT. */
export type PrimaryFactor =
  | { readonly method: 'password'; readonly username: string; readonly password: string }
  | { readonly method: 'cert'; readonly identityFile: string; readonly clientCertificate: ClientCertificate }
  | { readonly method: 'ext-jwt'; readonly jwt: string }

/** The members of the current API session that commands read. */
export interface ApiSession {
  readonly token: string
  readonly expiresAt: string
  readonly identity: { readonly id: string; readonly name: string }
  readonly authenticatorId: string
  readonly isCertExtendRequested?: boolean
  readonly authQueries?: readonly AuthQuery[]
}

/** A second factor that a session owes. */
export interface AuthQuery {
  readonly typeId?: string
  /** The address at which the user obtains an external JWT. */
  readonly httpUrl?: string
}

/** Signs in. The session may still owe second factors. @throws RequestError if the factor is not accepted */
export async function requestApiSession(transport: Transport, factor: PrimaryFactor): Promise<ApiSession> {
  const body = factor.method === 'password' ? { username: factor.username, password: factor.password } : {}
  const client = new Client(transport, { base: EITHER_PATH })
  return (await client.call('POST', `/authenticate?method=${factor.method}`, body)).data as ApiSession
}

/** Whether the identity of the client's session has a verified second factor. */
export async function hasVerifiedMfa(client: Client): Promise<boolean> {
  try {
    return ((await client.call('GET', '/current-identity/mfa')).data as { isVerified: boolean }).isVerified
  } catch (error) {
    if (error instanceof RequestError && error.status === 404) return false
    throw error
  }
}

/** A session that may owe second factors. */
export class PartialSession {
  readonly #client: Client

  constructor(transport: Transport, { token }: Pick<ApiSession, 'token'>) {
    this.#client = new Client(transport, { base: EITHER_PATH, token })
  }

  /** Whether the identity has a verified second factor. */
  hasVerifiedMfa(): Promise<boolean> {
    return hasVerifiedMfa(this.#client)
  }

  /** Presents a code of the second factor, or a recovery code. Returns false if it is not accepted. */
  async presentCode(code: string): Promise<boolean> {
    try {
      await this.#client.call('POST', '/authenticate/mfa', { code: normalizeCode(code) })
      return true
    } catch (error) {
      if (error instanceof RequestError && error.code === 'MFA_INVALID_TOKEN') return false
      throw error
    }
  }

  /** The session as it is now. */
  async read(): Promise<ApiSession> {
    return (await this.#client.call('GET', '/current-api-session')).data as ApiSession
  }

  /** Ends the session. Errors are ignored, because a session that is not used expires. */
  async end(): Promise<void> {
    await this.#client.call('DELETE', '/current-api-session').catch(() => undefined)
  }
}

/** A code as the controller compares it: people type it in groups, and a recovery code in lower case. */
export function normalizeCode(text: string): string {
  return text.replaceAll(' ', '').toUpperCase()
}

export function owesCode({ authQueries = [] }: ApiSession): boolean {
  return authQueries.some(({ typeId }) => typeId === 'MFA' || typeId === 'TOTP')
}

/** The external JWT that a session owes, if it owes one. */
export function findOwedToken({ authQueries = [] }: ApiSession): AuthQuery | undefined {
  return authQueries.find(({ typeId }) => typeId === 'EXT-JWT')
}
