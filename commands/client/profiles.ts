// The profiles of a user: URL, pinned root certificate and session of each controller, in one private file.
import { existsSync, readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { writePrivateFile } from '../../src/pki/files.ts'
import { CommandError, EXIT } from '../foundation/exit-codes.ts'
import { describeFileError, describeWriteError } from '../foundation/file-errors.ts'

/** How a profile signs in, so that a later login needs no flags. */
export interface SignInMethod {
  readonly username?: string | undefined
  /** The path of an identity file, whose certificate signs in. */
  readonly identityFile?: string | undefined
  /**
   * The path of a file with an external JWT. Together with a username or an identity file it is the second factor, which comes with
   * every request.
   */
  readonly extJwtFile?: string | undefined
  /** Signs in with a browser, at the pages of the controller. */
  readonly usesBrowser?: true | undefined
  /** The external JWT signer at whose issuer a browser signs in. */
  readonly signer?: SignerMethod | undefined
}

/** How to sign in at the issuer of an external JWT signer. */
export interface SignerMethod {
  readonly name: string
  /** The path of a file with the authorities of the issuer's certificate, besides the public ones. */
  readonly caFile?: string | undefined
  readonly callbackPort?: number | undefined
}

/** The refresh token of a sign-in by OpenID Connect, and where it is redeemed. */
export interface StoredGrant {
  readonly tokenEndpoint: string
  readonly clientId: string
  readonly refreshToken: string
  /** Of an external issuer: which of its tokens signs in. */
  readonly target?: 'ACCESS' | 'ID' | undefined
}

/** The access token of a session that began by OpenID Connect; it is renewed by the grant of the profile. */
export interface StoredAccessToken {
  readonly token: string
  /** When it expires, in milliseconds of this machine's clock. */
  readonly expiresAt: number
}

export interface Profile extends SignInMethod {
  readonly url: string
  /** The pinned root certificate, as PEM; while the controller replaces it, also the one before. */
  readonly rootPem: string
  /** The token of the API session, which expires if it is not used. */
  readonly token?: string
  /** In place of the token, if the session began by OpenID Connect. */
  readonly accessToken?: StoredAccessToken
  /** By which the session is renewed: of this controller together with an access token, else of an external issuer. */
  readonly grant?: StoredGrant
  /** The start of the session, RFC 3339. */
  readonly signedInAt?: string
}

interface ProfilesFile {
  readonly current?: string
  readonly profiles: Readonly<Record<string, Profile>>
}

/** The file of profiles cannot be read or parsed. */
export class ProfilesUnreadableError extends Error {
  constructor(path: string, cause: unknown) {
    super(`${path} cannot be read: ${describeFileError(cause, path)}`, { cause })
    this.name = 'ProfilesUnreadableError'
  }
}

export class Profiles {
  readonly #path: string
  #content: ProfilesFile

  private constructor(path: string, content: ProfilesFile) {
    this.#path = path
    this.#content = content
  }

  /**
   * Reads the profiles of this user; they are empty if there is no file yet. @throws ProfilesUnreadableError if the
   * file is invalid
   */
  static open(env: NodeJS.ProcessEnv): Profiles {
    const path = join(env.XDG_CONFIG_HOME || join(homedir(), '.config'), 'controller', 'profiles.json')
    return new Profiles(path, readProfiles(path))
  }

  get currentName(): string | undefined {
    return this.#content.current
  }

  get names(): string[] {
    return Object.keys(this.#content.profiles).sort()
  }

  get(name: string): Profile | undefined {
    return Object.hasOwn(this.#content.profiles, name) ? this.#content.profiles[name] : undefined
  }

  /** Stores a profile and makes it the current one. */
  save(name: string, profile: Profile): void {
    this.#change(({ profiles }) => ({ current: name, profiles: { ...profiles, [name]: profile } }))
  }

  /** Stores a profile if there is none of this name, and makes it the current one if there is no other. */
  add(name: string, profile: Profile): void {
    this.#change(({ current = name, profiles }) => ({ current, profiles: { [name]: profile, ...profiles } }))
  }

  /** Makes a profile the current one. */
  use(name: string): void {
    this.#change((content) => ({ ...content, current: name }))
  }

  /** Replaces the pinned roots of a profile, unless they are no longer those that the caller verified the new ones by. */
  updateRoots(name: string, previousPem: string, rootPem: string): void {
    this.#change((content) => {
      const profile = content.profiles[name]
      if (profile?.rootPem !== previousPem) return content
      return { ...content, profiles: { ...content.profiles, [name]: { ...profile, rootPem } } }
    })
  }

  /** Stores a new session of a profile, unless another process has changed its session. */
  renewSession(name: string, previous: Profile, renewed: Partial<Profile>): void {
    this.#change((content) => {
      const profile = content.profiles[name]
      const isChanged =
        profile?.token !== previous.token || profile?.grant?.refreshToken !== previous.grant?.refreshToken
      if (!profile || isChanged) return content
      return { ...content, profiles: { ...content.profiles, [name]: { ...profile, ...renewed } } }
    })
  }

  /** Removes the session of a profile, unless another process has deleted the profile. */
  signOut(name: string): void {
    this.#change((content) => {
      const profile = content.profiles[name]
      if (!profile) return content
      const { token, accessToken, grant, signedInAt, ...rest } = profile
      return { ...content, profiles: { ...content.profiles, [name]: rest } }
    })
  }

  /** Deletes a profile. If it was the current one, there is no current one afterwards. */
  delete(name: string): void {
    this.#change(({ current, profiles: { [name]: _deleted, ...profiles } }) => ({
      ...(current === undefined || current === name ? {} : { current }),
      profiles,
    }))
  }

  /** Reads the file again before the change, because another process may have changed it. */
  #change(change: (content: ProfilesFile) => ProfilesFile): void {
    this.#content = change(readProfiles(this.#path))
    try {
      writePrivateFile(this.#path, `${JSON.stringify(this.#content, null, 2)}\n`)
    } catch (error) {
      const message = `${this.#path} cannot be written: ${describeWriteError(error, this.#path)}`
      throw new CommandError(EXIT.failed, 'NOT_WRITABLE', message, { hint: 'set XDG_CONFIG_HOME to another directory' })
    }
  }
}

function readProfiles(path: string): ProfilesFile {
  try {
    if (!existsSync(path)) return { profiles: {} }
    const content = JSON.parse(readFileSync(path, 'utf8')) as Partial<ProfilesFile> | null
    if (typeof content?.profiles !== 'object') throw new Error('it does not contain profiles')
    return content as ProfilesFile
  } catch (error) {
    throw new ProfilesUnreadableError(path, error)
  }
}

/** Whether a profile has a session, which may have ended. */
export function isSignedIn({ token, accessToken }: Profile): boolean {
  return token !== undefined || accessToken !== undefined
}

/** The file with the external JWT that comes with every request of a profile, if there is one. */
export function findSecondFactorFile({ username, identityFile, extJwtFile }: SignInMethod): string | undefined {
  return username === undefined && identityFile === undefined ? undefined : extJwtFile
}

/** The default name of a profile: host and port. */
export function toProfileName(url: string): string {
  return new URL(url).host
}
