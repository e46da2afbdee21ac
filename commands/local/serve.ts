// `controller serve`: runs both APIs, and initializes the data directory at the first start.
import { once } from 'node:events'
import { createServer } from 'node:net'
import { splitAddress } from '../../src/settings/setting-types.ts'
import type { Overrides } from '../../src/settings/settings.ts'
import { dataDirectoryFlag, explainOpenError, resolveDataDirectory } from '../client/data-directory.ts'
import { rememberDirectory } from '../client/known-directories.ts'
import { CommandError, EXIT } from '../foundation/exit-codes.ts'
import { PrintingCommand } from '../framework/base.ts'
import { networkFlags, readNetworkSettings } from './init.ts'

export class Serve extends PrintingCommand {
  static override summary = 'Runs the controller. Initializes an empty data directory first.'
  static override flags = { 'data-dir': dataDirectoryFlag, ...networkFlags }
  static override examples = ['<%= config.bin %> <%= command.id %> --data-dir ./data']

  async run(): Promise<void> {
    const { flags } = await this.parse(Serve)
    await serveDirectory({
      directory: resolveDataDirectory(flags['data-dir']),
      settings: readNetworkSettings(flags),
      notice: (text) => this.notice(text),
    })
  }
}

interface Serving {
  readonly directory: string
  readonly settings: Overrides
  /** Writes a message for the user to stderr. */
  notice(text: string): void
  /** Lines that follow the announcement of a controller at this URL. */
  describe?(url: string): Promise<readonly string[]>
  /** Runs once the announcement and these lines are written. */
  onAnnounced?(): void
}

/** Runs the controller of a data directory until it is asked to stop. */
export async function serveDirectory({ directory, settings, notice, describe, onAnnounced }: Serving): Promise<void> {
  const { startController } = await import('../../server/start.ts')
  const { limitHeapGrowth } = await import('../../server/listeners/engine-memory.ts')
  const running = await startController({ directory, settings, env: process.env }).catch(explainServeError(directory))
  // Not before: a start leaves little garbage, and collections would delay it.
  limitHeapGrowth()
  rememberDirectory(directory, process.env)
  logStdoutErrors(running)
  // Signals are handled before the announcement, because a supervisor may send one as soon as it reads that.
  const stopSignal = waitForStopSignal()
  const lines = [...renderAnnouncement(running), ...((await describe?.(running.url)) ?? [])]
  process.stdout.write(`${lines.join('\n')}\n`, (error) => {
    if (!error) onAnnounced?.()
  })
  await stopSignal
  notice('Stopping: waiting for running requests.')
  await running.close()
  // Output that is not read would keep the process alive.
  if (process.stdout.writableLength + process.stderr.writableLength > 0) process.exit(EXIT.done)
}

type RunningController = Awaited<ReturnType<typeof import('../../server/start.ts').startController>>

/**
 * The lines printed at the start: URL, addresses, fingerprint of the root certificate, created files and the bootstrap
 * token.
 */
function renderAnnouncement({ url, addresses, fingerprint, written, bootstrapToken }: RunningController): string[] {
  return [
    `Controller     ${url}`,
    `Listening on   ${addresses.join(', ')}`,
    `Root SHA-256   ${fingerprint}`,
    ...(written.length > 0 ? ['Wrote', ...written.map((file) => `  ${file}`)] : []),
    ...(bootstrapToken
      ? [
          '',
          'No administrator can sign in yet. This token creates the first one; it is valid once, for one hour:',
          '',
          `  ${bootstrapToken}`,
          '',
          'Next: controller login --bootstrap',
        ]
      : []),
  ]
}

/** The controller continues to run if stdout fails or is closed. */
function logStdoutErrors({ controller: { log } }: RunningController): void {
  process.stdout.removeAllListeners('error')
  process.stdout.on('error', (error) => log.warn({ err: error }, 'standard output cannot be written'))
}

/**
 * Requires that the addresses of a controller can be bound, before anything is made that depends on them.
 * @throws CommandError if one cannot be bound, or a setting is invalid
 */
export async function assertCanListen(directory: string, settings: Overrides): Promise<void> {
  const { readConfig } = await import('../../src/settings/config.ts')
  const probe = async () => {
    for (const { address } of readConfig(undefined, process.env, settings).listeners) {
      const server = createServer().listen(splitAddress(address))
      await once(server, 'listening')
      server.close()
      await once(server, 'close')
    }
  }
  await probe().catch(explainServeError(directory))
}

function explainServeError(directory: string) {
  const explainDirectory = explainOpenError(directory, 'stop it first, or use another --data-dir')
  return (error: Error & { syscall?: string }): never => {
    if (error.syscall === 'listen') throw listenError(error)
    return explainDirectory(error)
  }
}

const LISTEN_REASONS: Readonly<Record<string, readonly [reason: string, hint: string, exitCode: number]>> = {
  EADDRINUSE: ['another process listens there', 'stop it, or use --listen with another address', EXIT.tryLater],
  EACCES: [
    'this account may not use ports below 1024',
    'use --listen with a port from 1024, or give the process CAP_NET_BIND_SERVICE',
    EXIT.notPermitted,
  ],
  EADDRNOTAVAIL: ['this machine does not have that address', 'use --listen with another address', EXIT.usage],
}

function listenError(error: Error & { code?: string; address?: string; port?: number }): CommandError {
  const address = error.address === undefined ? 'the address' : `${error.address}:${error.port}`
  const [reason, hint, exitCode] = LISTEN_REASONS[error.code ?? ''] ?? [
    error.message,
    'use --listen with another address',
    EXIT.tryLater,
  ]
  return new CommandError(exitCode, 'CANNOT_LISTEN', `cannot listen on ${address}: ${reason}`, { hint })
}

/** Settles at the first SIGTERM or SIGINT. A second SIGINT terminates the process at once. */
function waitForStopSignal(): Promise<void> {
  const others = process.listeners('SIGINT')
  for (const listener of others) process.off('SIGINT', listener as () => void)
  return new Promise((resolve) => {
    process.once('SIGTERM', () => resolve())
    process.once('SIGINT', () => {
      for (const listener of others) process.on('SIGINT', listener as () => void)
      resolve()
    })
  })
}
