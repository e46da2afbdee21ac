// Which controller a command speaks to: one that runs, by a profile, or the data directory itself, only when asked.
import { hostname, userInfo } from 'node:os'
import { Flags, type Interfaces } from '@oclif/core'
import { createHttpTransport } from '../src/client/http-transport.ts'
import type { Transport } from '../src/client/transport.ts'
import { Client } from './client/client.ts'
import { type Profile, Profiles } from './client/profiles.ts'
import { dataDirectoryFlag, openOffline, resolveDataDirectory } from './data-directory.ts'
import { CommandError, EXIT } from './exit-codes.ts'
import { withRequestOutput } from './show-request.ts'

/** The flags by which a controller is chosen. */
export interface ConnectionFlags {
  readonly controller?: string | undefined
  readonly profile?: string | undefined
  readonly offline?: boolean | undefined
  readonly 'data-dir'?: string | undefined
  readonly 'show-request'?: boolean | undefined
}

export const profileFlag = Flags.string({
  description: 'The profile to use; the current one unless said otherwise.',
  env: 'CONTROLLER_PROFILE',
  helpGroup: 'GLOBAL',
})

export const controllerFlag = Flags.string({
  description: 'URL of the controller, in place of a profile.',
  helpGroup: 'GLOBAL',
})

export const connectionFlags: Interfaces.FlagInput = {
  controller: controllerFlag,
  profile: profileFlag,
  offline: Flags.boolean({
    description: 'Work on the data directory itself, while no controller runs on it.',
    helpGroup: 'GLOBAL',
  }),
  'data-dir': { ...dataDirectoryFlag, helpGroup: 'GLOBAL' },
  'show-request': Flags.boolean({
    description: 'Show on stderr what is sent, without its secrets.',
    helpGroup: 'GLOBAL',
  }),
}

export interface ConnectOptions {
  /** Of this command line, for the controller's log. */
  readonly version: string
  /** Whether the request needs no session. */
  readonly isPublic: boolean
  /** What paths stand below; the management API unless said otherwise. */
  readonly base: string | undefined
  /** Where `--show-request` writes. */
  notice(text: string): void
}

/** A client of the controller that the flags choose. @throws CommandError where there is none, or it is not free */
export async function connect(flags: ConnectionFlags, options: ConnectOptions): Promise<Client> {
  const { version, isPublic, base } = options
  const show = (transport: Transport) =>
    flags['show-request'] ? withRequestOutput(transport, options.notice) : transport
  if (flags.offline) {
    return new Client(show(await openOffline(resolveDataDirectory(flags['data-dir']), getUserName())), { base })
  }
  const { name, profile } = chooseProfile(flags)
  if (profile.token === undefined && !isPublic) {
    throw new CommandError(
      EXIT.signInFirst,
      'NOT_SIGNED_IN',
      `${profile.url}: nobody is signed in with the profile ${name}`,
      {
        hint: `controller login ${profile.url} --profile ${name}`,
      },
    )
  }
  const { url, rootPem, token } = profile
  const headers = { 'user-agent': `controller/${version} (${hostname()})` }
  return new Client(show(createHttpTransport({ url, rootPem, headers })), { base, token })
}

/** Who works on this machine, for the audit. */
export function getUserName(): string {
  try {
    return userInfo().username
  } catch {
    return `uid ${process.getuid?.() ?? 'unknown'}`
  }
}

/** The profile that the flags name, else the current one. @throws CommandError with exit code 4 */
export function chooseProfile({ controller, profile }: ConnectionFlags): { name: string; profile: Profile } {
  const profiles = Profiles.open(process.env)
  if (controller !== undefined) return profileOfUrl(profiles, controller, profile)
  const name = profile ?? profiles.currentName
  const found = name === undefined ? undefined : profiles.get(name)
  if (name !== undefined && found) return { name, profile: found }
  const message = name === undefined ? 'no controller is known yet' : `there is no profile ${name}`
  const hint = name === undefined ? 'controller login https://HOST:PORT' : 'controller profile list'
  throw new CommandError(EXIT.signInFirst, 'NOT_SIGNED_IN', message, { hint })
}

/** Several profiles may lead to one controller: the one that is named, else the current one, else the first. */
function profileOfUrl(profiles: Profiles, url: string, named: string | undefined): { name: string; profile: Profile } {
  const wanted = normalizeUrl(url)
  const names = [
    ...(named === undefined ? [] : [named]),
    ...(profiles.currentName === undefined ? [] : [profiles.currentName]),
    ...profiles.names,
  ]
  for (const name of names) {
    const profile = profiles.get(name)
    if (profile?.url === wanted) return { name, profile }
  }
  throw new CommandError(EXIT.signInFirst, 'NOT_SIGNED_IN', `there is no profile for ${wanted}`, {
    hint: `controller login ${wanted}`,
  })
}

/** `https://host:port` from what a person typed. @throws CommandError with exit code 2 */
export function normalizeUrl(given: string): string {
  const text = given.includes('://') ? given : `https://${given}`
  if (URL.canParse(text) && text.startsWith('https://')) return new URL(text).origin
  throw new CommandError(EXIT.usage, 'USAGE', `${given} is not the URL of a controller`, { hint: 'https://HOST:PORT' })
}
