// `controller serve`: runs both APIs, making the data directory at the first start.

import { PrintingCommand } from './base.ts'
import { rememberDirectory } from './client/known-directories.ts'
import { dataDirectoryFlag, explainOpenError, resolveDataDirectory } from './data-directory.ts'
import { CommandError, EXIT } from './exit-codes.ts'
import { networkFlags, readNetworkSettings } from './init.ts'

export class Serve extends PrintingCommand {
  static override summary = 'Runs the controller. In an empty data directory it makes everything it needs first.'
  static override flags = { 'data-dir': dataDirectoryFlag, ...networkFlags }
  static override examples = ['<%= config.bin %> <%= command.id %> --data-dir ./data']

  async run(): Promise<void> {
    const { flags } = await this.parse(Serve)
    const directory = resolveDataDirectory(flags['data-dir'])
    const { startController } = await import('../server/start.ts')
    const settings = readNetworkSettings(flags)
    const running = await startController({ directory, settings, env: process.env }).catch(explain(directory))
    rememberDirectory(directory, process.env)
    outliveReaders(running)
    // Before anybody is told that it runs, and could stop it.
    const stopped = untilStopped()
    process.stdout.write(`${announcement(running).join('\n')}\n`)
    await stopped
    this.notice('Stopping: letting running requests finish.')
    await running.close()
    // What nobody reads would keep the process from ending.
    if (process.stdout.writableLength + process.stderr.writableLength > 0) process.exit(EXIT.done)
  }
}

type Running = Awaited<ReturnType<typeof import('../server/start.ts').startController>>

/** What a person needs to go on: where it is, how to recognise it, what was made, what to type next. */
function announcement({ url, addresses, fingerprint, written, bootstrapToken }: Running): string[] {
  return [
    `Controller     ${url}`,
    `Listening on   ${addresses.join(', ')}`,
    `Root SHA-256   ${fingerprint}`,
    ...(written.length > 0 ? ['Wrote', ...written.map((file) => `  ${file}`)] : []),
    ...(bootstrapToken
      ? [
          '',
          'No administrator can sign in yet. This token makes the first one; it works once, within an hour:',
          '',
          `  ${bootstrapToken}`,
          '',
          `Next: controller login --bootstrap ${bootstrapToken}`,
        ]
      : []),
  ]
}

/** A controller goes on if what it prints cannot be written, or is not read any more. */
function outliveReaders({ controller: { log } }: Running): void {
  process.stdout.removeAllListeners('error')
  process.stdout.on('error', (error) => log.warn({ err: error }, 'standard output cannot be written'))
}

function explain(directory: string) {
  const explainDirectory = explainOpenError(directory, 'stop it first, or use another --data-dir')
  return (error: Error & { syscall?: string }): never => {
    if (error.syscall === 'listen') {
      throw new CommandError(EXIT.tryLater, 'CANNOT_LISTEN', `the address cannot be used: ${error.message}`, {
        hint: '--listen with another address',
      })
    }
    return explainDirectory(error)
  }
}

/** Settles at the first signal that asks for an end; the second one of the kind ends it at once, as everywhere. */
function untilStopped(): Promise<void> {
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
