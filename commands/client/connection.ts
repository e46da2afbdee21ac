// Chooses the controller of a command: a running one by its profile, or with `--offline` the data directory.
import { hostname, userInfo } from 'node:os'
import { Flags, type Interfaces } from '@oclif/core'
import { createHttpTransport } from '../../src/client/http-transport.ts'
import type { Transport } from '../../src/client/transport.ts'
import { COMMAND_VARIABLES, findMisspeltVariables } from '../../src/settings/misspelt-variables.ts'
import { toCommandLine } from '../foundation/command-lines.ts'
import { CommandError, EXIT } from '../foundation/exit-codes.ts'
import { type BasePath, Client } from './client.ts'
import { normalizeUrl } from './controller-url.ts'
import { openOffline } from './data-directory.ts'
import type { Environment } from './environment.ts'
import { readExternalJwt, toBearerHeaders } from './external-jwt.ts'
import { databaseDirectoryFlag, findDataDirectory } from './local-directory.ts'
import { createProfileTransport } from './pinned-roots.ts'
import { findSecondFactorFile, isSignedIn, type Profile, Profiles } from './profiles.ts'
import { withOwnSession, withRenewedSession } from './renewed-session.ts'
import { withRequestOutput } from './show-request.ts'

/** The flags that choose a controller. */
export interface ConnectionFlags {
  readonly controller?: string | undefined
  readonly profile?: string | undefined
  readonly offline?: boolean | undefined
  readonly 'data-dir'?: string | undefined
  readonly 'show-request'?: boolean | undefined
}

export const profileFlag = Flags.string({
  description: 'The profile to use. Default: what environment variables name, else the current one.',
  env: 'CONTROLLER_PROFILE',
  helpGroup: 'GLOBAL',
})

export const controllerFlag = Flags.string({
  description: 'URL of the controller, instead of a profile. Default: CONTROLLER_URL.',
  helpGroup: 'GLOBAL',
})

export const connectionFlags: Interfaces.FlagInput = {
  controller: controllerFlag,
  profile: profileFlag,
  offline: Flags.boolean({
    description: 'Work on the data directory, while no controller runs on it.',
    helpGroup: 'GLOBAL',
  }),
  'data-dir': { ...databaseDirectoryFlag, helpGroup: 'GLOBAL' },
  'show-request': Flags.boolean({
    description: 'Print each request to stderr, with secrets masked.',
    helpGroup: 'GLOBAL',
  }),
}

export interface ConnectOptions {
  /** The version of this command line, for the controller's log. */
  readonly version: string
  /** Whether requests work without an API session. */
  readonly isPublic: boolean
  /** The prefix of paths. Default: the management API. */
  readonly base: BasePath | undefined
  /** Whether files of a data directory that other accounts have rights to stay as they are. Default: they become private. */
  readonly leavesAccess?: boolean
  /** Writes a message for the user to stderr. */
  notice(text: string): void
}

/**
 * A client of the controller that the flags choose. @throws CommandError if there is none, or its data directory is
 * locked
 */
export async function connect(flags: ConnectionFlags, options: ConnectOptions): Promise<Client> {
  const { version, isPublic, base, leavesAccess = false, notice } = options
  const wrap = (transport: Transport) => (flags['show-request'] ? withRequestOutput(transport, notice) : transport)
  if (flags.offline) {
    const onShared = (path: string) => notice(`other accounts had rights to ${path}; it is private now`)
    const access = leavesAccess ? { isUnchanged: true } : { onShared }
    const directory = await findDataDirectory(flags['data-dir'])
    return new Client(wrap(await openOffline(directory, getUserName(), access)), { base, onWarning: notice })
  }
  for (const { name, meant } of findMisspeltVariables(process.env, COMMAND_VARIABLES))
    notice(`${name} has no effect: did you mean ${meant}?`)
  const { name, profile } = await chooseProfile(flags)
  const isByEnvironment = name === undefined
  const signsInItself = isByEnvironment && profile.identityFile !== undefined
  if (!isSignedIn(profile) && !signsInItself && !isPublic) throw notSignedInError(name, profile)
  const secondFile = findSecondFactorFile(profile)
  const headers = {
    'user-agent': `controller/${version} (${hostname()})`,
    ...(secondFile === undefined ? {} : toBearerHeaders(await readExternalJwt(secondFile))),
  }
  const { url, rootPem, token } = profile
  const transport = isByEnvironment
    ? withOwnSession(wrap(createHttpTransport({ url, rootPem, headers })), profile)
    : await withRenewedSession(wrap(createProfileTransport(name, profile, headers)), name, profile)
  return new Client(transport, { base, token, onWarning: notice })
}

function notSignedInError(name: string | undefined, { url }: Profile): CommandError {
  const [message, hint] =
    name === undefined
      ? ['neither CONTROLLER_TOKEN nor CONTROLLER_IDENTITY_FILE is set', `set one of them, or: controller login ${url}`]
      : [`${url}: the profile ${name} is not signed in`, toCommandLine('login', ['--profile', name])]
  return new CommandError(EXIT.signInFirst, 'NOT_SIGNED_IN', message, { hint })
}

/** The external JWT that comes with every request of the profile; undefined if its sign-in needs none. */
export async function readSecondJwt(flags: ConnectionFlags): Promise<string | undefined> {
  if (flags.offline) return undefined
  const file = findSecondFactorFile((await chooseProfile(flags)).profile)
  return file === undefined ? undefined : readExternalJwt(file)
}

/** The user name of the operating system, for the audit. */
export function getUserName(): string {
  try {
    return userInfo().username
  } catch {
    return `uid ${process.getuid?.() ?? 'unknown'}`
  }
}

/** The connection of a command: a profile, or the values of environment variables in place of one, without a name. */
export interface ChosenProfile {
  readonly name: string | undefined
  readonly profile: Profile
}

/**
 * The profile that the flags choose, else the environment, else the current one.
 * @throws CommandError with exit code 4 if there is none, 2 if an environment variable cannot be used
 */
export async function chooseProfile({ controller, profile }: ConnectionFlags): Promise<ChosenProfile> {
  const profiles = Profiles.open(process.env)
  const flagUrl = controller === undefined ? undefined : normalizeUrl(controller)
  const isTyped = profile !== undefined && profile !== process.env.CONTROLLER_PROFILE
  const environment = isTyped || !hasEnvironment(process.env) ? undefined : await readVariables(flagUrl, profiles)
  if (environment?.profile) return { name: undefined, profile: environment.profile }
  if (flagUrl !== undefined) return findProfileOfUrl(profiles, flagUrl, profile)
  if (environment?.url !== undefined && profile === undefined) {
    return findProfileOfUrl(profiles, environment.url, undefined, ', which CONTROLLER_URL names')
  }
  const name = profile ?? profiles.currentName
  const chosenProfile = name === undefined ? undefined : profiles.get(name)
  if (name !== undefined && chosenProfile) return { name, profile: chosenProfile }
  const { message, hint } =
    name === undefined
      ? describeNoProfile(profiles)
      : { message: `there is no profile ${name}`, hint: 'controller profile list' }
  throw new CommandError(EXIT.signInFirst, 'NOT_SIGNED_IN', message, { hint })
}

/** Whether environment variables name a controller or a credential. */
export function hasEnvironment(env: NodeJS.ProcessEnv): boolean {
  return Boolean(env.CONTROLLER_URL || env.CONTROLLER_TOKEN || env.CONTROLLER_IDENTITY_FILE)
}

async function readVariables(flagUrl: string | undefined, profiles: Profiles): Promise<Environment> {
  const { readEnvironment } = await import('./environment.ts')
  return readEnvironment(process.env, flagUrl, profiles)
}

/** Explains why no profile is chosen, with the command that helps. */
export function describeNoProfile({ names }: Profiles): { readonly message: string; readonly hint: string } {
  const [name] = names
  if (name === undefined) return { message: 'there is no profile yet', hint: 'controller login https://HOST:PORT' }
  const others = names.length > 1 ? `, or another one of ${names.join(', ')}` : ''
  return { message: 'no profile is the current one', hint: `${toCommandLine('profile use', [name])}${others}` }
}

/**
 * Several profiles may have the same URL: the profile of the flag comes first, then the current one, then all others.
 */
function findProfileOfUrl(
  profiles: Profiles,
  url: string,
  preferred: string | undefined,
  source = '',
): { name: string; profile: Profile } {
  const names = [
    ...(preferred === undefined ? [] : [preferred]),
    ...(profiles.currentName === undefined ? [] : [profiles.currentName]),
    ...profiles.names,
  ]
  for (const name of names) {
    const profile = profiles.get(name)
    if (profile?.url === url) return { name, profile }
  }
  throw new CommandError(EXIT.signInFirst, 'NOT_SIGNED_IN', `there is no profile for ${url}${source}`, {
    hint: `controller login ${url}`,
  })
}
