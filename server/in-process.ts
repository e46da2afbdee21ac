// A transport to an application in the same process, for offline commands and tests.
//
// The code that creates the transport sets its caller, and no header can claim that caller. State that only a running
// controller has (`x-offline` in a definition) is reported as unknown.
import { encodeBody, type Request, type Transport } from '../src/client/transport.ts'
import type { Controller } from '../src/controller/controller.ts'
import { openController } from '../src/controller/open-controller.ts'
import { systemClock } from '../src/foundation/clock.ts'
import { silentLog } from '../src/foundation/log.ts'
import { openOrCloseAll } from '../src/foundation/open-resources.ts'
import { readConfig } from '../src/settings/config.ts'
import { type AccessOptions, getDataPaths } from '../src/settings/data-directory.ts'
import { lockDirectory } from '../src/storage/sqlite/directory-lock.ts'
import type { Caller } from '../src/storage/transactions/context.ts'
import { buildApp } from './app.ts'

/**
 * Requests go through the same routes, validation, audit and errors as over HTTPS.
 * @param caller who is behind every request; without one, sessions decide as they do over HTTPS
 */
export async function createInProcessTransport(
  controller: Controller,
  target: string,
  caller?: Caller,
): Promise<Transport> {
  const app = await buildApp(controller, caller ? { trustedCaller: caller } : {})
  const toInjection = (request: Request) => {
    const { text, headers } = encodeBody(request)
    return {
      method: request.method as 'GET',
      url: request.path,
      headers,
      ...(text === undefined ? {} : { payload: text }),
    }
  }
  return {
    target,
    async send(request) {
      const reply = await app.inject(toInjection(request))
      return { status: reply.statusCode, headers: reply.headers as Record<string, string>, text: reply.payload }
    },
    async stream(request) {
      const reply = await app.inject({ ...toInjection(request), payloadAsStream: true })
      return { status: reply.statusCode, headers: reply.headers as Record<string, string>, body: reply.stream() }
    },
    async close() {
      await app.close()
    },
  }
}

/**
 * Opens the controller of a data directory in this process, for a local operator who can read the directory.
 * Nothing else works on the directory until the transport is closed.
 * @param osUser who is noted in the audit
 * @param access what is done about files that other accounts have rights to
 * @throws DirectoryLockedError, ConfigError, DataDirectoryError, STORAGE_UNAVAILABLE; then nothing stays open
 */
export function openOfflineTransport(
  directory: string,
  osUser: string,
  env: NodeJS.ProcessEnv,
  access: AccessOptions,
): Promise<Transport> {
  return openOrCloseAll(async (opened) => {
    opened.add(lockDirectory(directory, access))
    const config = readConfig(getDataPaths(directory).config, env)
    const controller = await openController({ directory, config, clock: systemClock, log: silentLog })
    opened.add(() => controller.close())
    const transport = await createInProcessTransport(controller, directory, { kind: 'local-operator', osUser })
    opened.add(() => transport.close?.())
    return {
      ...transport,
      async close() {
        const [failure] = await opened.close()
        if (failure !== undefined) throw failure
      },
    }
  })
}
