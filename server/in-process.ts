// A transport into an application of this very process: what offline commands and many tests speak through.
import { encodeBody, type Transport } from '../src/client/transport.ts'
import type { Caller } from '../src/context.ts'
import type { Controller } from '../src/controller.ts'
import { buildApp } from './app.ts'

/**
 * Requests go through the same routes, validation, audit and errors as over HTTPS.
 * @param caller who is behind every request; without one, sessions decide as they do over HTTPS
 */
export async function inProcessTransport(controller: Controller, target: string, caller?: Caller): Promise<Transport> {
  const app = await buildApp(controller, caller ? { trustedCaller: caller } : {})
  return {
    target,
    async send(request) {
      const { text, headers } = encodeBody(request)
      const reply = await app.inject({
        method: request.method as 'GET',
        url: request.path,
        headers,
        ...(text === undefined ? {} : { payload: text }),
      })
      return { status: reply.statusCode, headers: reply.headers as Record<string, string>, text: reply.payload }
    },
    async close() {
      await app.close()
    },
  }
}
