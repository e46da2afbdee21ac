// A connection over which one request at a time is sent and its response awaited.
import { Connection, type ConnectionOptions } from './connection.ts'
import type { HttpResponse } from './response-reader.ts'

export interface OpenConnectionOptions extends Omit<ConnectionOptions, 'keepsBodies'> {
  readonly onTicket?: (ticket: Buffer) => void
}

export interface OpenConnection {
  /** Sends a request. @throws if the connection ends before the response, or has ended already */
  ask(request: Uint8Array): Promise<HttpResponse>
  close(): void
}

/** Resolves once the handshake is over. @throws if it fails */
export function openConnection({ onTicket, ...options }: OpenConnectionOptions): Promise<OpenConnection> {
  return new Promise((resolve, reject) => {
    let failure: Error | undefined
    let waiting: { succeed(response: HttpResponse): void; fail(error: Error): void } | undefined
    const connection = new Connection(
      { ...options, keepsBodies: true },
      {
        onOpen: () =>
          resolve({
            ask: (request) =>
              new Promise((succeed, fail) => {
                if (failure) return fail(failure)
                waiting = { succeed, fail }
                connection.send(request)
              }),
            close: () => connection.close(),
          }),
        ...(onTicket && { onTicket }),
        onResponse: (response) => waiting?.succeed(response),
        onFailure: (error) => {
          failure = error
          reject(error)
          waiting?.fail(error)
        },
      },
    )
  })
}
