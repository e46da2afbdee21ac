// Chooses the controller, the profile and the way to sign in of a login.
import { existsSync } from 'node:fs'
import { basename, resolve } from 'node:path'
import { normalizeUrl } from '../client/controller-url.ts'
import {
  isSignedIn,
  type Profile,
  type Profiles,
  type SignerMethod,
  type SignInMethod,
  toProfileName,
} from '../client/profiles.ts'
import type { SecondFactorFlags } from '../client/second-factors.ts'
import type { PrimaryFactor } from '../client/sign-in.ts'
import { toCommandLine } from '../foundation/command-lines.ts'
import { makeUsageError } from '../foundation/exit-codes.ts'
import type { TrustFlags } from './root-trust.ts'

export interface LoginFlags extends TrustFlags, SecondFactorFlags {
  readonly profile?: string | undefined
  readonly username?: string | undefined
  readonly 'password-file'?: string | undefined
  readonly identity?: string | undefined
  readonly 'ext-jwt-file'?: string | undefined
  readonly browser?: boolean | undefined
  readonly signer?: string | undefined
  readonly 'issuer-ca-file'?: string | undefined
  readonly 'callback-port'?: number | undefined
}

/** The controller to sign in to, and the profile for the session. */
export interface LoginTarget {
  readonly url: string
  readonly name: string
  /** The profile before this login, if it is one of the same controller. */
  readonly profile: Profile | undefined
}

/**
 * Without a URL that is the profile of the flag, else the current one; a new profile is one of the current controller. With a
 * URL, the current profile is renewed if it is of that controller and signs in in the same way.
 */
export function chooseTarget(profiles: Profiles, flags: LoginFlags, givenUrl: string | undefined): LoginTarget {
  const { currentName } = profiles
  const current = currentName === undefined ? undefined : profiles.get(currentName)
  if (givenUrl === undefined) {
    const name = flags.profile ?? currentName
    const profile = name === undefined ? undefined : profiles.get(name)
    if (name !== undefined && profile) return { url: profile.url, name, profile }
    if (name !== undefined && current) return { url: current.url, name, profile: undefined }
    throw makeUsageError('missing argument: URL', { hint: 'controller login https://HOST:PORT' })
  }
  assertNotFile(givenUrl)
  const url = normalizeUrl(givenUrl)
  const isCurrent = current?.url === url && isSameMethod(current, flags)
  const name = flags.profile ?? (isCurrent && currentName !== undefined ? currentName : nameProfile(url, flags))
  const profile = profiles.get(name)
  return { url, name, profile: profile?.url === url ? profile : undefined }
}

/** An enrollment token or an identity file in place of the URL would be taken for a host. @throws CommandError with exit code 2 */
function assertNotFile(text: string): void {
  const [, extension] = /\.(jwt|json)$/i.exec(text) ?? []
  if (extension === undefined || !existsSync(text)) return
  const isToken = extension.toLowerCase() === 'jwt'
  throw makeUsageError(`${text} is ${isToken ? 'an enrollment token' : 'a file'}, not the URL of a controller`, {
    hint: isToken ? toCommandLine('enroll', [text]) : toCommandLine('login', ['--identity', text]),
  })
}

function isSameMethod(profile: Profile, flags: LoginFlags): boolean {
  const { browser, identity, signer, username, 'ext-jwt-file': extJwt } = flags
  if (browser) return profile.usesBrowser === true
  if (signer !== undefined) return profile.signer?.name === signer
  if (identity !== undefined) return profile.identityFile === resolve(identity)
  if (username !== undefined) return profile.username === username
  return extJwt === undefined || profile.extJwtFile === resolve(extJwt)
}

function nameProfile(url: string, { identity }: LoginFlags): string {
  return identity === undefined ? toProfileName(url) : basename(identity).replace(/\.json$/i, '')
}

/** The warning that a login replaces the session of another user in a profile; undefined if it does not. */
export function describeReplacement(name: string, before: Profile | undefined, next: Profile): string | undefined {
  if (!before || !isSignedIn(before)) return undefined
  const user = findUser(before)
  if (user === undefined || (user === findUser(next) && before.url === next.url)) return undefined
  return `The profile ${name} held a session of ${user} at ${before.url}, which is replaced. To keep both, sign in with --profile NAME.`
}

/** The username, else the file that the user signs in with. */
function findUser({ username, identityFile, extJwtFile, signer }: SignInMethod): string | undefined {
  return username ?? identityFile ?? extJwtFile ?? signer?.name
}

/** How to sign in. */
export type LoginMethod = SignInMethod &
  (
    | { readonly primary: PrimaryFactor['method'] | 'browser' }
    | { readonly primary: 'signer'; readonly signer: SignerMethod }
  )

/** How to sign in: as the flags state, else as the profile did before. */
export function chooseMethod(flags: LoginFlags, profile: Profile | undefined, isBootstrap: boolean): LoginMethod {
  const { identity, 'password-file': passwordFile, 'ext-jwt-file': extJwt } = flags
  const extJwtFile = extJwt === undefined || extJwt === STDIN ? extJwt : resolve(extJwt)
  if (flags.browser) return { primary: 'browser', usesBrowser: true }
  if (flags.signer !== undefined) return { primary: 'signer', signer: toSignerMethod(flags.signer, flags, profile) }
  if (identity !== undefined) return { primary: 'cert', identityFile: resolve(identity), extJwtFile }
  if (isBootstrap || flags.username !== undefined || passwordFile !== undefined) {
    // The profile may be of an earlier controller at this address, and the first administrator chooses the username.
    const username = flags.username ?? (isBootstrap ? undefined : profile?.username)
    const isSamePerson = username !== undefined && username === profile?.username
    return { primary: 'password', username, extJwtFile: extJwtFile ?? (isSamePerson ? profile?.extJwtFile : undefined) }
  }
  if (extJwtFile !== undefined) return { primary: 'ext-jwt', extJwtFile }
  if (profile?.usesBrowser) return { primary: 'browser', usesBrowser: true }
  if (profile?.signer) return { primary: 'signer', signer: toSignerMethod(profile.signer.name, flags, profile) }
  const { username, identityFile, extJwtFile: profileJwtFile } = profile ?? {}
  if (identityFile !== undefined) return { primary: 'cert', identityFile, extJwtFile: profileJwtFile }
  const isByToken = username === undefined && profileJwtFile !== undefined
  return { primary: isByToken ? 'ext-jwt' : 'password', username, extJwtFile: profileJwtFile }
}

const STDIN = '-'

/** How to sign in at the issuer of a signer: as the flags state, else as the profile did before. */
function toSignerMethod(name: string, flags: LoginFlags, profile: Profile | undefined): SignerMethod {
  const { 'issuer-ca-file': caFile, 'callback-port': callbackPort } = flags
  const previous = profile?.signer?.name === name ? profile.signer : undefined
  return {
    name,
    caFile: caFile === undefined ? previous?.caFile : resolve(caFile),
    callbackPort: callbackPort ?? previous?.callbackPort,
  }
}

/** The method as a profile stores it: stdin cannot be read again. */
export function toStoredMethod(method: LoginMethod, factor: PrimaryFactor | undefined): SignInMethod {
  const { identityFile, extJwtFile, signer, usesBrowser } = method
  return {
    username: factor?.method === 'password' ? factor.username : undefined,
    identityFile,
    signer,
    usesBrowser,
    extJwtFile: extJwtFile === STDIN ? undefined : extJwtFile,
  }
}
