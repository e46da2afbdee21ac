// `controller profile …`: lists, selects and deletes the profiles of the user.
import { findNearest } from '../../src/foundation/nearest.ts'
import { Client, EITHER_PATH } from '../client/client.ts'
import { describeNoProfile } from '../client/connection.ts'
import { isSignedIn, type Profile, Profiles } from '../client/profiles.ts'
import { openSession } from '../client/renewed-session.ts'
import { rootFromPem } from '../client/trust.ts'
import { CommandError, EXIT } from '../foundation/exit-codes.ts'
import { RequestError } from '../foundation/request-error.ts'
import { requiredArgument } from '../framework/arguments.ts'
import { PrintingCommand } from '../framework/base.ts'

const profileArgument = { profile: requiredArgument({ description: 'Name of the profile.' }) }

export class ProfileList extends PrintingCommand {
  static override summary = 'Lists the profiles: controllers, with the username and the session of each.'
  static override description = [
    'SESSION is "signed in", "ended" if the session was not used for too long or was revoked, "signed out", or "unknown" if the',
    'controller does not respond.',
  ].join('\n')
  static override aliases = ['profiles:list', 'profile:ls', 'profiles:ls']
  static override examples = ['<%= config.bin %> <%= command.id %>']

  async run(): Promise<void> {
    const { flags } = await this.parse(ProfileList)
    const profiles = Profiles.open(process.env)
    const items = await Promise.all(
      profiles.names.map(async (name) => ({
        ...toItem(name, profiles),
        session: await readSessionState(name, requireProfile(profiles, name)),
      })),
    )
    const columns = ['name', 'current', 'url', 'username', 'session', 'signedInAt']
    await this.print({ kind: 'list', name: 'profiles', items, columns }, flags.output)
  }
}

export class ProfileUse extends PrintingCommand {
  static override summary = 'Makes a profile the current one.'
  static override args = profileArgument
  static override examples = ['<%= config.bin %> <%= command.id %> 127.0.0.1:1280']

  async run(): Promise<void> {
    const { args, flags } = await this.parse(ProfileUse)
    const profiles = Profiles.open(process.env)
    const { url } = requireProfile(profiles, args.profile)
    profiles.use(args.profile)
    const sentence = `Commands now go to ${url} (profile ${args.profile}).`
    await this.print({ kind: 'done', sentence, facts: toItem(args.profile, profiles) }, flags.output)
  }
}

export class ProfileDelete extends PrintingCommand {
  static override summary = 'Deletes a profile: its URL, its root certificate and its session.'
  static override aliases = ['profile:rm']
  static override args = profileArgument
  static override examples = ['<%= config.bin %> <%= command.id %> 127.0.0.1:1280']

  async run(): Promise<void> {
    const { args, flags } = await this.parse(ProfileDelete)
    const profiles = Profiles.open(process.env)
    const { url } = requireProfile(profiles, args.profile)
    profiles.delete(args.profile)
    const { message, hint } = describeNoProfile(profiles)
    const next = profiles.currentName === undefined && profiles.names.length > 0 ? ` Now ${message}: ${hint}` : ''
    const sentence = `Deleted the profile ${args.profile}.${next}`
    await this.print({ kind: 'done', sentence, facts: { name: args.profile, url, deleted: true } }, flags.output)
  }
}

function requireProfile(profiles: Profiles, name: string): Profile {
  const profile = profiles.get(name)
  if (profile) return profile
  const near = findNearest(name, profiles.names)
  const hint = near.length > 0 ? near.join(', ') : 'controller profile list'
  throw new CommandError(EXIT.notFound, 'NOT_FOUND', `there is no profile ${name}`, { hint })
}

const TIMEOUT_MS = 3_000

/** The state of the session of a profile, which only its controller knows. */
async function readSessionState(name: string, profile: Profile): Promise<string> {
  if (!isSignedIn(profile)) return 'signed out'
  const client = new Client(await openSession(name, profile), { base: EITHER_PATH, token: profile.token })
  const timer = setTimeout(() => void client.close(), TIMEOUT_MS)
  try {
    await client.call('GET', '/current-api-session')
    return 'signed in'
  } catch (error) {
    const isUnknown = error instanceof RequestError && error.causeCode === 'SESSION_UNKNOWN'
    const cannotRenew = error instanceof CommandError && error.exitCode === EXIT.signInFirst
    return isUnknown || cannotRenew ? 'ended' : 'unknown'
  } finally {
    clearTimeout(timer)
    await client.close()
  }
}

/** A profile as it is listed, without its token. */
function toItem(name: string, profiles: Profiles) {
  const profile = requireProfile(profiles, name)
  const { url, rootPem, username, signedInAt } = profile
  return {
    name,
    current: name === profiles.currentName,
    url,
    username: username ?? null,
    signedInAt: isSignedIn(profile) ? (signedInAt ?? null) : null,
    fingerprint: rootFromPem(rootPem)?.fingerprint ?? null,
  }
}
