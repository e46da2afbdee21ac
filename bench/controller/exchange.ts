// One request over a connection of its own, for everything that is not measured.
import { createSecureContext } from 'node:tls'
import { Connection, type Credential, type Target } from '../generator/connection.ts'
import type { HttpResponse } from '../generator/response-reader.ts'

/** Sends a request and resolves with the whole response. */
export function exchange(target: Target, request: Buffer, credential?: Credential): Promise<HttpResponse> {
  return new Promise((resolve, reject) => {
    const secureContext = credential && createSecureContext(credential)
    const connection = new Connection(
      { target, secureContext, keepsBodies: true },
      {
        onOpen: () => connection.send(request),
        onResponse: (response) => {
          connection.close()
          resolve(response)
        },
        onFailure: reject,
      },
    )
  })
}
