// Extends `controller edge-router create`: it writes a configuration for the router, and the token beside it.
import { isIP } from 'node:net'
import { Flags, type Interfaces } from '@oclif/core'
import { quoteShellWord } from '../../../src/foundation/shell-words.ts'
import { ConfigError, readHostAndPort, splitAddress } from '../../../src/settings/setting-types.ts'
import { readClaims } from '../../client/external-jwt.ts'
import { findFileTarget, ReservedFile } from '../../client/reserved-file.ts'
import { makeUsageError } from '../../foundation/exit-codes.ts'
import type { CommandRun } from '../../framework/connected.ts'
import type { OutputRecord } from '../../terminal/cells.ts'
import { findJwt } from '../../terminal/formats.ts'
import { confirmReplacement } from '../../terminal/replacement.ts'
import type { TaskExtension } from '../task-extension.ts'
import { renderRouterConfiguration, TUNNEL_MODES, toBindAddress } from './configuration.ts'

const ADDRESS_FLAGS = ['advertise', 'listen', 'link-advertise'] as const
const TUNNELER_FLAG = 'is-tunneler-enabled'

export const routerConfiguration: TaskExtension = {
  flags: {
    'config-file': Flags.string({
      description: 'Write a configuration for the router to this file, and its enrollment JWT beside it.',
      helpValue: 'FILE',
      exclusive: ['dry-run'],
    }),
    advertise: makeAddressFlag('the address at which clients and hosts reach the router.'),
    listen: makeAddressFlag('the address that the router binds. Default: the port of --advertise.'),
    'link-advertise': makeAddressFlag('the address at which other routers reach it. Default: it accepts no links.'),
    tunnel: Flags.string({
      description: `With --config-file: the router hosts services itself; sets --${TUNNELER_FLAG}.`,
      options: [...TUNNEL_MODES],
      dependsOn: ['config-file'],
    }),
  } as Interfaces.FlagInput,
  complete: completeRun,
  prepare: prepareFile,
}

function makeAddressFlag(description: string) {
  return Flags.string({
    description: `With --config-file: ${description}`,
    helpValue: 'HOST:PORT',
    dependsOn: ['config-file'],
  })
}

/** The token goes beside the configuration, and a router that hosts services is a tunneler. @throws CommandError with exit code 2 */
function completeRun(run: CommandRun): CommandRun {
  const { flags } = run
  const file = flags['config-file'] as string | undefined
  if (file === undefined) return run
  for (const flag of ADDRESS_FLAGS) assertAddress(flag, flags[flag])
  if (flags.advertise === undefined) {
    throw makeUsageError('missing flag: --advertise, the address at which clients and hosts reach the router', {
      field: 'advertise',
      hint: '--advertise HOST:PORT, such as --advertise router.example.com:3022',
    })
  }
  if (flags.tunnel !== undefined && flags[TUNNELER_FLAG] === false)
    throw makeUsageError(`--tunnel cannot be combined with --no-${TUNNELER_FLAG}`)
  const isTunneler = flags.tunnel === undefined ? flags[TUNNELER_FLAG] : true
  return { ...run, flags: { 'jwt-file': `${toBasePath(file)}.jwt`, ...flags, [TUNNELER_FLAG]: isTunneler } }
}

/** Routers split an address at its colons. @throws CommandError with exit code 2 */
export function assertAddress(flag: string, address: unknown): void {
  if (address === undefined) return
  try {
    const { host, port } = splitAddress(readHostAndPort(address, flag))
    if (isIP(host) !== 6 && port > 0) return
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
  }
  throw makeUsageError(`--${flag} must be HOST:PORT, with a name or an IPv4 address, not ${address}`, { field: flag })
}

/** The file, whose space is reserved before the router is created. */
async function prepareFile(run: CommandRun) {
  const path = run.flags['config-file'] as string | undefined
  if (path === undefined) return undefined
  const target = findFileTarget(path)
  if (target.status?.size && run.flags.force !== true) await confirmReplacement(path, 'is not empty', 'config-file')
  const file = ReservedFile.create(target)
  return { finish: (record: OutputRecord) => writeFile(file, path, record, run), release: () => file.release() }
}

function writeFile(file: ReservedFile, path: string, record: OutputRecord, { flags, notice }: CommandRun): void {
  const advertise = flags.advertise as string
  file.commit(
    renderRouterConfiguration({
      name: String(record.name),
      basePath: toBasePath(path),
      controllerAddress: readControllerAddress(findJwt(record) ?? ''),
      advertise,
      listen: (flags.listen as string | undefined) ?? toBindAddress(advertise),
      linkAdvertise: flags['link-advertise'] as string | undefined,
      tunnel: flags.tunnel as (typeof TUNNEL_MODES)[number] | undefined,
    }),
  )
  notice(`Wrote the configuration to ${path}. Next, in the same folder on the machine of the router:`)
  for (const command of listRouterCommands(path, flags['jwt-file'] as string)) notice(`  ${command}`)
}

/** The commands that enroll and start a router. */
export function listRouterCommands(configuration: string, jwtFile: string): string[] {
  const [config, jwt] = [configuration, jwtFile].map(quoteShellWord)
  return [`ziti router enroll ${config} --jwt ${jwt}`, `ziti router run ${config}`]
}

/** The first address of the controller for routers, as the token of a router states it. */
export function readControllerAddress(jwt: string): string {
  const { ctrls } = readClaims(jwt) ?? {}
  return Array.isArray(ctrls) ? String(ctrls[0]) : ''
}

/** The beginning of the names of a router's other files. */
function toBasePath(path: string): string {
  return path.replace(/\.ya?ml$/i, '')
}
