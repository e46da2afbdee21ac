// `controller logout`: ends the session, and removes it from the profile.
import { createHttpTransport, UnreachableError } from '../../src/client/http-transport.ts'
import { Client, EITHER_PATH } from '../client/client.ts'
import { chooseProfile, controllerFlag, profileFlag } from '../client/connection.ts'
import { Profiles } from '../client/profiles.ts'
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
    const { url, rootPem, token } = profile
    if (token !== undefined) {
      const client = new Client(createHttpTransport({ url, rootPem }), { base: EITHER_PATH, token })
      try {
        await client.call('DELETE', '/current-api-session')
      } catch (error) {
        // The profile is signed out in any case: a session on an unreachable controller expires.
        if (!(error instanceof UnreachableError) && !(error instanceof RequestError && error.status === 401))
          throw error
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
