// Profiles for the command line, written as a sign-in would.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Profile } from '../../commands/client/profiles.ts'

/** Gives the user of this environment these profiles; the first one is current. */
export function writeProfiles(env: NodeJS.ProcessEnv, profiles: Readonly<Record<string, Profile>>): void {
  const folder = join(env.XDG_CONFIG_HOME ?? '', 'controller')
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'profiles.json'), JSON.stringify({ current: Object.keys(profiles)[0], profiles }))
}
