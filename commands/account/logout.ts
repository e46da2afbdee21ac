// `controller logout`: ends the session, and removes it from the profile.
import { UnreachableError } from '../../src/client/http-transport.ts'
import { isMachineToken } from '../../src/definitions/resources/tokens.ts'
import { Client, EITHER_PATH } from '../client/client.ts'
import { chooseProfile, controllerFlag, profileFlag } from '../client/connection.ts'
import { isSignedIn, Profiles } from '../client/profiles.ts'
import { openSession } from '../client/renewed-session.ts'
import { toCommandLine } from '../foundation/command-lines.ts'
import { CommandError, EXIT, makeUsageError } from '../foundation/exit-codes.ts'
import { RequestError } from '../foundation/request-error.ts'
import { PrintingCommand } from '../framework/base.ts'

export class Logout extends PrintingCommand {
  static override summary = 'Signs out: ends the session, and removes it from the profile.'
  static override flags = { controller: controllerFlag, profile: profileFlag }
  static override examples = [
    '<%= config.bin %> <%= command.id %>',
    '<%= config.bin %> <%= command.id %> --profile other',
  ]

  async run(): Promise<void> {
    const { flags } = await this.parse(Logout)
    const { name, profile } = await chooseProfile(flags)
    const { url, token } = profile
    if (isMachineToken(token ?? ''))
      throw makeUsageError('CONTROLLER_TOKEN is the token of a machine, which has no session', {
        hint: toCommandLine('token delete', ['NAME']),
      })
    if (isSignedIn(profile)) {
      const client = new Client(await openSession(name, profile), { base: EITHER_PATH, token })
      try {
        await client.call('DELETE', '/current-api-session')
      } catch (error) {
        // The profile is signed out in any case: a session on an unreachable controller expires.
        if (!(error instanceof UnreachableError) && !hasEnded(error)) throw error
        if (error instanceof UnreachableError)
          this.notice(`${error.message}; the session expires there if it is not used`)
      } finally {
        await client.close()
      }
    }
    if (name !== undefined) Profiles.open(process.env).signOut(name)
    const source = name === undefined ? 'the session of CONTROLLER_TOKEN' : `profile ${name}`
    const sentence = `Signed out of ${url} (${source}).`
    await this.print({ kind: 'done', sentence, facts: { profile: name ?? null, url } }, flags.output)
  }
}

/** Whether a session has ended, so that it does not have to be ended. */
function hasEnded(error: unknown): boolean {
  return error instanceof RequestError
    ? error.status === 401
    : error instanceof CommandError && error.exitCode === EXIT.signInFirst
}
