// Starts a controller on a data directory: lock, first-time work, sockets, background work.
import { hostname } from 'node:os'
import { type DestinationStream, type Logger, pino } from 'pino'
import { hasUsableAdministrator } from '../src/authentication/administrators/administrators.ts'
import type { Controller } from '../src/controller/controller.ts'
import { openController } from '../src/controller/open-controller.ts'
import { systemClock } from '../src/foundation/clock.ts'
import { openOrCloseAll } from '../src/foundation/open-resources.ts'
import { createBootstrapToken, initializeDirectory, isInitialized } from '../src/initialize.ts'
import { getAdvertisedAddress } from '../src/settings/addresses.ts'
import { readConfig } from '../src/settings/config.ts'
import { DataDirectoryError, getDataPaths } from '../src/settings/data-directory.ts'
import { COMMAND_VARIABLES, findMisspeltVariables } from '../src/settings/misspelt-variables.ts'
import { type Config, type Overrides, settingVariables } from '../src/settings/settings.ts'
import { lockDirectory } from '../src/storage/sqlite/directory-lock.ts'
import { listApiPaths } from './api/mount-points.ts'
import { buildApp } from './app.ts'
import { listen } from './listeners/listen.ts'
import { LogOutput } from './logging/log-output.ts'
import { EventLoopDelay } from './monitoring/load.ts'
import { openMetrics } from './monitoring/open-metrics.ts'
import { startTimers } from './timers.ts'

export interface StartOptions {
  readonly directory: string
  /** Settings that win over the file; a new directory keeps them. */
  readonly settings: Overrides
  readonly env: NodeJS.ProcessEnv
  /** The destination of the log; stderr by default. */
  readonly logTo?: DestinationStream
}

export interface Running {
  readonly controller: Controller
  /** Under which clients reach it. */
  readonly url: string
  /** The addresses that are really bound. */
  readonly addresses: readonly string[]
  /** SHA-256 of the root certificate. */
  readonly fingerprint: string
  /** The files that a first start made. */
  readonly written: readonly string[]
  /** Present if no administrator can sign in. */
  readonly bootstrapToken: string | undefined
  close(): Promise<void>
}

/**
 * Starts a controller. If that fails half-way, nothing stays open.
 * @throws DirectoryLockedError, ConfigError, DataDirectoryError, STORAGE_UNAVAILABLE, and what the system says of an address that
 * cannot be bound
 */
export function startController({ directory, settings, env, logTo }: StartOptions): Promise<Running> {
  return openOrCloseAll(async (opened) => {
    process.umask(0o077)
    const written = isInitialized(directory)
      ? []
      : await initializeDirectory({ directory, settings, clock: systemClock }).catch(acceptInitialized)
    const closedToOthers: string[] = []
    opened.add(lockDirectory(directory, { onShared: (path) => closedToOthers.push(path) }))
    const config = readConfig(getDataPaths(directory).config, env, settings)
    const log = await openLog(config, env, logTo)
    for (const { name, meant } of findMisspeltVariables(env, [...settingVariables, ...COMMAND_VARIABLES]))
      log.warn({ name, meant }, 'this environment variable is not a setting, but is spelled almost like one')
    for (const path of closedToOthers) log.warn({ path }, 'other accounts had rights to this file; it is private now')
    const controller = await openController({
      directory,
      config,
      clock: systemClock,
      log,
      waitsForOlder: true,
      // Its memory no longer holds what the database holds, which it reads again at its start; or another process has its name.
      fail(error) {
        log.fatal({ err: error }, 'the controller stops')
        process.exit(1)
      },
    })
    opened.add(() => controller.close())
    const reason = controller.backups.findObstacle()
    if (reason !== undefined) log.error({ reason }, 'backups cannot be made')
    const system = controller.contexts.create({ kind: 'system' })
    // Before the sockets open, so that no client meets a certificate that has expired.
    await controller.certificates.upkeep.runIfDue(system)
    const load = new EventLoopDelay()
    const app = await buildApp(controller, { load, metrics: await openMetrics(controller, load), hasConsole: true })
    const listening = await listen(app, controller)
    opened.add(() => listening.close())
    await controller.membership.announce(system, listApiPaths(config))
    const bootstrapToken = (await hasUsableAdministrator(system)) ? undefined : await createBootstrapToken(controller)
    opened.add(startTimers(controller))
    load.start()
    opened.add(() => load.stop())
    log.info({ addresses: listening.addresses }, 'listening')
    return {
      controller,
      url: `https://${getAdvertisedAddress(config)}`,
      addresses: listening.addresses,
      fingerprint: controller.authority.rootFingerprint,
      written,
      bootstrapToken,
      async close() {
        for (const error of await opened.close()) log.error({ err: error }, 'a part of the controller did not close')
        log.info({}, 'stopped')
      },
    }
  })
}

/** Another process may have initialized the directory meanwhile: then it is served as it is. */
function acceptInitialized(error: Error): string[] {
  if (error instanceof DataDirectoryError && error.code === 'ALREADY_INITIALISED') return []
  throw error
}

async function openLog(config: Config, env: NodeJS.ProcessEnv, logTo: DestinationStream | undefined): Promise<Logger> {
  const options = { level: config['log.level'], base: { host: hostname(), pid: process.pid } }
  const onRecovered = (lines: number) =>
    log.error({ lines }, 'log lines were dropped because they could not be written')
  const output = logTo ?? new LogOutput({ onRecovered })
  const log = pino(options, await formatLog(output, config['log.format'], env))
  return log
}

async function formatLog(
  output: DestinationStream,
  format: Config['log.format'],
  env: NodeJS.ProcessEnv,
): Promise<DestinationStream> {
  const isTerminal = process.stderr.isTTY === true
  if (format === 'json' || (format === 'auto' && !isTerminal)) return output
  const { createLogText } = await import('./logging/log-text.ts')
  return createLogText(output, isTerminal && !env.NO_COLOR)
}
