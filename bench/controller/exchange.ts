// One request over a connection of its own, for everything that is not measured.
import { createSecureContext } from 'node:tls'
import type { Credential, Target } from '../generator/connection.ts'
import { openConnection } from '../generator/open-connection.ts'
import type { HttpResponse } from '../generator/response-reader.ts'

/** Sends a request and resolves with the whole response. */
export async function exchange(target: Target, request: Buffer, credential?: Credential): Promise<HttpResponse> {
  const connection = await openConnection({ target, secureContext: credential && createSecureContext(credential) })
  try {
    return await connection.ask(request)
  } finally {
    connection.close()
  }
}
