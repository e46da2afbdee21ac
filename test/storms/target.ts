// The controller under attack: the built binary, in a process and a data directory of its own.
import { cpSync, readFileSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { createHttpTransport } from '../../src/client/http-transport.ts'
import type { Transport } from '../../src/client/transport.ts'
import { getDataPaths } from '../../src/settings/data-directory.ts'
import { cleanEnvironment, type Served, type ServeOptions, serve } from '../world/binary.ts'
import { ADMIN, copyOfTemplate, MANAGEMENT, type TestResponse, toTestResponse } from '../world/controller.ts'
import { findFreePort } from '../world/free-port.ts'
import { type RawTarget, rawTarget } from '../world/raw-requests.ts'

export interface TargetOptions extends ServeOptions {
  /** Environment variables of the controller. Times are shortened by them, so that a storm ends within seconds. */
  readonly env?: Readonly<Record<string, string>>
  /** The parent of the data directory; the temporary directory by default. */
  readonly parent?: string
}

export interface Target {
  readonly directory: string
  readonly url: string
  readonly rootPem: string
  readonly raw: RawTarget
  readonly served: Served
  readonly pid: number
  /** Sends requests to the management API as an administrator. */
  send(method: string, path: string, body?: unknown): Promise<TestResponse>
  /** The resident memory of the process. */
  residentMb(): number
  /** Ends the process and returns its exit code. */
  end(signal: NodeJS.Signals): Promise<number | null>
}

/** Makes a data directory whose administrator can sign in. */
export function makeDirectory(parent: string | undefined): string {
  const copy = copyOfTemplate()
  if (parent === undefined) return copy
  const directory = join(parent, 'data')
  cpSync(copy, directory, { recursive: true })
  rmSync(dirname(copy), { recursive: true })
  return directory
}

export async function startTarget(directory: string, { env = {}, ...options }: TargetOptions): Promise<Target> {
  const home = cleanEnvironment()
  const args = ['--data-dir', directory, '--listen', `127.0.0.1:${await findFreePort()}`]
  const served = await serve(args, { ...home, ...env }, options)
  const rootPem = readFileSync(join(getDataPaths(directory).pki, 'root.crt'), 'utf8')
  const transport = createHttpTransport({ url: served.url, rootPem })
  const token = await signIn(transport)
  const pid = served.child.pid as number
  return {
    directory,
    url: served.url,
    rootPem,
    raw: rawTarget(served.url, rootPem),
    served,
    pid,
    async send(method, path, body) {
      const request = { method, path: MANAGEMENT + path, headers: { 'net-session': token } }
      return toTestResponse(await transport.send(body === undefined ? request : { ...request, body }))
    },
    residentMb: () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024,
    async end(signal) {
      await transport.close()
      const code = await served.stop(signal)
      rmSync(home.HOME as string, { recursive: true, force: true })
      return code
    },
  }
}

async function signIn(transport: Transport): Promise<string> {
  const path = `${MANAGEMENT}/authenticate?method=password`
  return toTestResponse(await transport.send({ method: 'POST', path, body: ADMIN })).body.data.token
}
