// Controllers for tests: real files, a clock that tests may move, requests over injection or real TLS.
import { chmodSync, cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { AnyOperation } from '../../server/api/operation.ts'
import { buildApp } from '../../server/app.ts'
import { type Listening, listen } from '../../server/listeners/listen.ts'
import { openMetrics } from '../../server/monitoring/open-metrics.ts'
import type { LiveSources } from '../../src/access/live-state.ts'
import type { ApiSessionIdentity } from '../../src/authentication/api-sessions/live-api-sessions.ts'
import type { PasswordCost } from '../../src/authentication/credentials/password-hasher.ts'
import { createHttpTransport } from '../../src/client/http-transport.ts'
import { collectReply, encodeBody, type Reply, type Request, type Transport } from '../../src/client/transport.ts'
import type { Controller } from '../../src/controller/controller.ts'
import { openController } from '../../src/controller/open-controller.ts'
import { identities } from '../../src/definitions/resources/identities.ts'
import type { Clock } from '../../src/foundation/clock.ts'
import { type Log, silentLog } from '../../src/foundation/log.ts'
import { toCertificatePem } from '../../src/pki/certificates.ts'
import { readConfig } from '../../src/settings/config.ts'
import { getDataPaths } from '../../src/settings/data-directory.ts'
import type { Overrides } from '../../src/settings/settings.ts'
import type { CommitLog } from '../../src/storage/commit-log.ts'
import { get, newEntity } from '../../src/storage/entities/entities.ts'
import { LocalLog } from '../../src/storage/local-log.ts'
import type { Migration } from '../../src/storage/migrate.ts'
import type { Caller, Context } from '../../src/storage/transactions/context.ts'
import { checkResponse } from './described.ts'
import { recordErrors } from './faults.ts'
import { Shadow } from './shadow.ts'

/** Whether controllers sign the tokens of sessions from their beginning, as if they had met a router of release 2. */
export const areTokensSigned = process.env.CONTROLLER_TEST_SESSION_TOKENS === 'signed'

/** Whether every controller is followed, which doubles the time to open one. */
const isEachFollowed = process.env.CONTROLLER_TEST_FOLLOWERS === 'all'

export const ADMIN = { username: 'admin', password: 'correct horse battery' } as const
export const TEMPLATE_VARIABLE = 'CONTROLLER_TEST_TEMPLATE'
/** The lowest cost of hashes, for tests that are not about it. */
const CHEAP_PASSWORDS: PasswordCost = { memoryCost: 64, timeCost: 1, parallelism: 1 }
const PRIVATE_DIRECTORY = 0o700
export const MANAGEMENT = '/edge/management/v1'
export const CLIENT = '/edge/client/v1'
export const FABRIC = '/fabric/v1'

/** A clock that stands still until a test moves it; it begins when the certificates of the template are valid already. */
export class TestClock implements Clock {
  #now: number
  #monotonic = 0

  constructor(now = Math.floor(Date.now() / 1000) * 1000) {
    this.#now = now
  }

  now(): number {
    return this.#now
  }

  monotonic(): number {
    return this.#monotonic
  }

  /** Lets time pass. */
  advance(milliseconds: number): void {
    this.#now += milliseconds
    this.#monotonic += milliseconds
  }

  /** Sets the wall clock forward or back, while no time passes. */
  set(milliseconds: number): void {
    this.#now += milliseconds
  }
}

/** A response as tests read it. */
export interface TestResponse extends Reply {
  // biome-ignore lint/suspicious/noExplicitAny: tests read any member of a response
  readonly body: any
}

export interface TestController {
  readonly controller: Controller
  readonly directory: string
  readonly clock: TestClock
  /** The code's own way in, as the controller itself. */
  readonly system: Context
  /** Sends a request in process with the session of the token, from an address other than 127.0.0.1 if `from` is given. */
  send(request: Request & { token?: string | undefined; from?: string }): Promise<TestResponse>
  /** The token of a new administrator's session. */
  admin(): Promise<string>
  /** Makes an identity and signs it in; no credential is involved. */
  signIn(values?: {
    name?: string
    isAdmin?: boolean
    permissions?: string[]
    roleAttributes?: string[]
  }): Promise<{ id: string; token: string }>
  /** Opens another API session of an identity; no credential is involved. */
  signInAgain(identityId: string): Promise<{ apiSessionId: string; token: string }>
  /** Opens the sockets. */
  listen(): Promise<{ url: string; rootPem: string; addresses: readonly string[] }>
  /** Closes everything and keeps the directory, so that it can be opened again. */
  stop(): Promise<void>
  close(): Promise<void>
}

export interface TestOptions {
  readonly settings?: Overrides
  readonly clock?: TestClock
  readonly log?: Log
  /** The sources of state beyond records. */
  readonly live?: LiveSources
  /** Works on this directory instead of a copy of the template. */
  readonly directory?: string
  readonly operations?: readonly AnyOperation[]
  readonly trustedCaller?: Caller
  readonly migrations?: readonly Migration[]
  /** The cost of password hashes; a hash takes as good as no time by default. */
  readonly passwordCost?: PasswordCost
  /**
   * Whether a second controller follows, which is compared at the end: by default if the run says so, and in some folders. False if
   * the tests write to the database past the controller.
   */
  readonly isFollowed?: boolean
  /** Whether the time is that of the database, among several controllers: for clocks that do not stand still. */
  readonly followsDatabaseTime?: boolean
  /** A log that it shares with other controllers. Then none follows it besides these. */
  readonly commitLog?: CommitLog
  /** Takes the error that would end its process. */
  readonly fail?: (error: Error) => void
  /** Whether it waits until controllers of older releases have stopped, as a served one does. */
  readonly waitsForOlder?: boolean
}

export async function testController(options: TestOptions = {}): Promise<TestController> {
  const { clock = new TestClock(), settings = {}, operations, trustedCaller, live, migrations } = options
  const { passwordCost = CHEAP_PASSWORDS, isFollowed = isEachFollowed, followsDatabaseTime = false } = options
  const log = recordErrors(options.log ?? silentLog)
  const directory = options.directory ?? copyOfTemplate()
  const listeners = [{ address: '127.0.0.1:0', apis: ['client', 'management'], dialect: 'native' }]
  const config = readConfig(
    getDataPaths(directory).config,
    {},
    { listeners, advertise: ['127.0.0.1:1280'], ...settings },
  )
  const localLog = new LocalLog()
  const isAlone = options.commitLog === undefined && config['cluster.database'] === undefined
  const commitLog = isAlone ? localLog : options.commitLog
  const openOptions = {
    ...{ directory, config, clock, log, passwordCost, followsDatabaseTime },
    ...(commitLog ? { commitLog } : {}),
    ...(options.fail ? { fail: options.fail } : {}),
    ...(options.waitsForOlder ? { waitsForOlder: true } : {}),
    ...(live ? { live } : {}),
    ...(migrations ? { migrations } : {}),
  }
  const controller = await openController(openOptions)
  const metrics = await openMetrics(controller, { delayMs: 0 })
  const app = await buildApp(controller, {
    onSend: checkResponse,
    metrics,
    hasConsole: true,
    ...(operations ? { operations } : {}),
    ...(trustedCaller ? { trustedCaller } : {}),
  })
  const system = controller.contexts.create({ kind: 'system' })
  if (areTokensSigned) await controller.sessionTokens.beginSigning(system)
  const shadow = isFollowed && isAlone ? await Shadow.open(controller, openOptions, localLog) : undefined
  let listening: Listening | undefined
  let sequence = 0

  async function send(request: Request & { token?: string | undefined; from?: string }): Promise<TestResponse> {
    const { text, headers } = encodeBody(request)
    // Only the beginning of a stream that does not end.
    const isEndless = request.path.startsWith(`${MANAGEMENT}/controller/events`)
    const reply = await app.inject({
      payloadAsStream: isEndless,
      method: request.method as 'GET',
      url: request.path,
      ...(request.from ? { remoteAddress: request.from } : {}),
      headers: { ...(request.token ? { 'net-session': request.token } : {}), ...headers },
      ...(text === undefined ? {} : { payload: text }),
    })
    const head = { status: reply.statusCode, headers: reply.headers as Reply['headers'] }
    if (!isEndless) return toTestResponse({ ...head, text: reply.payload })
    const body = reply.stream()
    if (head.status !== 200) return toTestResponse(await collectReply({ ...head, body }))
    body.destroy()
    return toTestResponse({ ...head, text: '' })
  }

  async function signIn(values: Parameters<TestController['signIn']>[0] = {}) {
    // Controllers of one network make different ones.
    const name = values.name ?? `${config['cluster.name'] ?? 'identity'}-${++sequence}`
    return system.write(async (tx) => {
      const entity = newEntity(tx, identities, { typeId: 'Default', isAdmin: false, ...values, name })
      await controller.entities.insert(tx, identities, entity)
      const session = await controller.auth.apiSessions.insert(tx, {
        identity: entity as unknown as ApiSessionIdentity,
        authenticatorId: 'none',
        ipAddress: '127.0.0.1',
        configTypes: [],
      })
      return { id: entity.id, token: controller.auth.apiSessions.deriveToken(session.id) }
    })
  }

  async function signInAgain(identityId: string) {
    return system.write(async (tx) => {
      const session = await controller.auth.apiSessions.insert(tx, {
        identity: (await get(tx, identities, identityId)) as unknown as ApiSessionIdentity,
        authenticatorId: 'none',
        ipAddress: '127.0.0.1',
        configTypes: [],
      })
      return { apiSessionId: session.id, token: controller.auth.apiSessions.deriveToken(session.id) }
    })
  }

  async function stop() {
    await (listening ? listening.close() : app.close())
    await controller.close()
    await shadow?.compareAndClose()
  }

  return {
    controller,
    directory,
    clock,
    system,
    send,
    signIn,
    signInAgain,
    admin: async () => (await signIn({ isAdmin: true })).token,
    async listen() {
      listening = await listen(app, controller)
      const { addresses } = listening
      return { url: `https://${addresses[0]}`, rootPem: toCertificatePem(controller.authority.root), addresses }
    },
    stop,
    async close() {
      await stop()
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

export function toTestResponse(reply: Reply): TestResponse {
  const isJson = String(reply.headers['content-type'] ?? '').startsWith('application/json')
  return { ...reply, body: isJson ? JSON.parse(reply.text) : undefined }
}

/** A transport over real TLS that a test can present a client certificate with. */
export function tlsTransport(url: string, rootPem: string): Transport {
  return createHttpTransport({ url, rootPem })
}

/** A new directory with the template's content. */
export function copyOfTemplate(): string {
  const template = process.env[TEMPLATE_VARIABLE]
  if (!template) throw new Error('the template of data directories was not made')
  const directory = join(mkdtempSync(join(tmpdir(), 'controller-test-')), 'data')
  cpSync(template, directory, { recursive: true })
  // Node.js 22 gives copies of directories the rights of new ones.
  for (const folder of [directory, getDataPaths(directory).pki]) chmodSync(folder, PRIVATE_DIRECTORY)
  return directory
}
