// One TLS connection over which whole requests are sent as bytes. Node's own client costs two to three times as much
// for each request, which on a machine with two cores would take from the server what is to be measured.
import type { OnReadOpts } from 'node:net'
import { connect, type SecureContext, type ConnectionOptions as TlsOptions } from 'node:tls'
import { type HttpResponse, ResponseReader } from './response-reader.ts'

export interface Target {
  readonly host: string
  readonly port: number
}

/** A client certificate with its chain, and its key; both PEM. */
export interface Credential {
  readonly cert: string
  readonly key: string
}

export interface ConnectionOptions {
  readonly target: Target
  /** Holds the client certificate; made beforehand, because that costs as much as half a handshake. */
  readonly secureContext?: SecureContext | undefined
  readonly keepsBodies?: boolean
  readonly localAddress?: string
  /** The ticket of a TLS session to resume. */
  readonly session?: Buffer | undefined
}

/** Receives the events of a connection. After `onFailure` nothing else comes. */
export interface ConnectionEvents {
  onOpen(): void
  onTicket?(ticket: Buffer): void
  onResponse(response: HttpResponse): void
  onFailure(error: Error): void
}

const READ_BUFFER_BYTES = 65_536

export class Connection {
  readonly #socket
  #isOver = false

  constructor(options: ConnectionOptions, events: ConnectionEvents) {
    const { target, secureContext, keepsBodies = false, localAddress, session } = options
    const reader = new ResponseReader({ keepsBodies })
    const buffer = Buffer.allocUnsafe(READ_BUFFER_BYTES)
    const fail = (error: Error) => {
      if (this.#isOver) return
      this.close()
      events.onFailure(error)
    }
    // One buffer for all that arrives, in place of a new one each time.
    const onread: OnReadOpts = {
      buffer,
      callback: (length) => {
        try {
          const response = reader.take(buffer.subarray(0, length))
          if (response) events.onResponse(response)
        } catch (error) {
          fail(error as Error)
        }
        return true
      },
    }
    const tlsOptions: TlsOptions & { readonly onread: OnReadOpts } = {
      ...target,
      ...(localAddress === undefined ? {} : { localAddress }),
      ...(session ? { session } : {}),
      ...(secureContext ? { secureContext } : {}),
      // The server is one that this program started: nothing is to be found out about it.
      rejectUnauthorized: false,
      ALPNProtocols: ['http/1.1'],
      onread,
    }
    this.#socket = connect(tlsOptions)
    this.#socket.setNoDelay(true)
    this.#socket.on('secureConnect', events.onOpen)
    if (events.onTicket) this.#socket.on('session', (ticket) => events.onTicket?.(ticket))
    this.#socket.on('error', fail)
    this.#socket.on('close', () => fail(new Error('the server closed the connection')))
  }

  send(request: Uint8Array): void {
    this.#socket.write(request)
  }

  /** Ends it without a word. */
  close(): void {
    this.#isOver = true
    this.#socket.destroy()
  }
}
