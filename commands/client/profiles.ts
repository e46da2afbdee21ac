// Which controllers a person works with: address, pinned root and session of each, in one private file.
import { existsSync, readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { writePrivateFile } from '../../src/pki/files.ts'

export interface Profile {
  readonly url: string
  /** PEM of the one root this profile trusts. */
  readonly rootPem: string
  readonly username?: string
  /** The token of the session; it ends by itself when it is not used. */
  readonly token?: string
  /** When the session began, RFC 3339. */
  readonly signedInAt?: string
}

interface ProfilesFile {
  readonly current?: string
  readonly profiles: Readonly<Record<string, Profile>>
}

/** The file holds something else than profiles. */
export class ProfilesUnreadableError extends Error {
  constructor(path: string, cause: unknown) {
    super(`${path} cannot be read: ${(cause as Error).message}`, { cause })
    this.name = 'ProfilesUnreadable'
  }
}

export class Profiles {
  readonly #path: string
  #content: ProfilesFile

  private constructor(path: string, content: ProfilesFile) {
    this.#path = path
    this.#content = content
  }

  /** The profiles of this user; none where there is no file yet. @throws ProfilesUnreadable */
  static open(env: NodeJS.ProcessEnv): Profiles {
    const path = join(env.XDG_CONFIG_HOME || join(homedir(), '.config'), 'controller', 'profiles.json')
    return new Profiles(path, read(path))
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

  use(name: string): void {
    this.#change((content) => ({ ...content, current: name }))
  }

  /** Forgets the session of a profile, and keeps the rest of it. */
  signOut(name: string): void {
    this.#change(({ profiles, ...content }) => {
      const { token, signedInAt, ...rest } = profiles[name] as Profile
      return { ...content, profiles: { ...profiles, [name]: rest } }
    })
  }

  /** Forgets a profile; when it was the current one, none is. */
  delete(name: string): void {
    this.#change(({ current, profiles: { [name]: _gone, ...profiles } }) => ({
      ...(current === undefined || current === name ? {} : { current }),
      profiles,
    }))
  }

  /** The file is read again first: another command may have changed it meanwhile. */
  #change(change: (content: ProfilesFile) => ProfilesFile): void {
    this.#content = change(read(this.#path))
    writePrivateFile(this.#path, `${JSON.stringify(this.#content, null, 2)}\n`)
  }
}

function read(path: string): ProfilesFile {
  if (!existsSync(path)) return { profiles: {} }
  try {
    const content = JSON.parse(readFileSync(path, 'utf8')) as Partial<ProfilesFile> | null
    if (typeof content?.profiles !== 'object') throw new Error('it holds no profiles')
    return content as ProfilesFile
  } catch (error) {
    throw new ProfilesUnreadableError(path, error)
  }
}

/** What a profile is called that is given no name: host and port. */
export function toProfileName(url: string): string {
  return new URL(url).host
}
