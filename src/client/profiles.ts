// Which controllers a person works with: address, pinned root and session of each, in one private file.
import { existsSync, readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { writePrivateFile } from '../pki/files.ts'

export interface Profile {
  readonly url: string
  /** PEM of the one root this profile trusts. */
  readonly rootPem: string
  readonly username?: string
  /** The token of the session; it ends by itself when it is not used. */
  readonly token?: string
}

interface ProfilesFile {
  readonly current?: string
  readonly profiles: Readonly<Record<string, Profile>>
}

export class Profiles {
  readonly #path: string
  #content: ProfilesFile

  private constructor(path: string, content: ProfilesFile) {
    this.#path = path
    this.#content = content
  }

  /** The profiles of this user; none where there is no file yet. */
  static open(env: NodeJS.ProcessEnv): Profiles {
    const path = join(env.XDG_CONFIG_HOME || join(homedir(), '.config'), 'controller', 'profiles.json')
    const content = existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as ProfilesFile) : { profiles: {} }
    return new Profiles(path, content)
  }

  get path(): string {
    return this.#path
  }

  get currentName(): string | undefined {
    return this.#content.current
  }

  get names(): string[] {
    return Object.keys(this.#content.profiles).sort()
  }

  get(name: string): Profile | undefined {
    return this.#content.profiles[name]
  }

  /** Stores a profile and makes it the current one. */
  save(name: string, profile: Profile): void {
    this.#write({ current: name, profiles: { ...this.#content.profiles, [name]: profile } })
  }

  use(name: string): void {
    this.#write({ ...this.#content, current: name })
  }

  #write(content: ProfilesFile): void {
    writePrivateFile(this.#path, `${JSON.stringify(content, null, 2)}\n`)
    this.#content = content
  }
}

/** What a profile is called that is given no name: host and port. */
export function profileName(url: string): string {
  return new URL(url).host
}
