// The reasons for which a router's request for a client is refused. The router passes the message on to the client.

/** The reasons that routers and clients tell apart. */
export type RequestRefusalReason =
  | 'unknown-api-session'
  | 'unknown-session'
  | 'wrong-session-type'
  | 'router-not-permitted'
  | 'unknown-service'
  | 'tunneling-not-enabled'
  | 'unknown-terminator'
  | 'invalid-precedence'
  | 'invalid-cost'
  | 'encryption-data-missing'
  | 'id-conflict'
  | 'busy'
  | 'other'

export class RequestRefusedError extends Error {
  override readonly name = 'RequestRefusedError'
  readonly reason: RequestRefusalReason
  /** The circuit that the request was about; undefined if there was none yet. */
  readonly circuitId: string | undefined

  constructor(reason: RequestRefusalReason, message: string, circuitId?: string) {
    super(message)
    this.reason = reason
    this.circuitId = circuitId
  }
}
