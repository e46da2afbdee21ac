// `controller whoami`: as whom, where, and until when.
import { connectedCommand } from './connected.ts'
import { chosenProfile } from './connection.ts'
import { spokenTime } from './times.ts'

interface OwnSession {
  readonly id: string
  readonly expiresAt: string
  readonly identity: { readonly id: string; readonly name: string }
}

export const whoami = connectedCommand({
  summary: 'Shows as whom you are signed in, where, and until when.',
  example: '-o json',
  async run({ client, flags, print }) {
    const { data } = await client.call('GET', '/current-api-session')
    const { id, identity, expiresAt } = data as OwnSession
    const { data: own } = await client.call('GET', '/current-identity')
    const { isAdmin } = own as { isAdmin: boolean }
    const { name } = chosenProfile(flags)
    const role = isAdmin ? 'an administrator' : 'not an administrator'
    await print({
      kind: 'done',
      sentence: `${identity.name}, ${role}, at ${client.target} (profile ${name}). Unused, the session ends ${spokenTime(expiresAt)}.`,
      facts: {
        profile: name,
        url: client.target,
        identityId: identity.id,
        identityName: identity.name,
        isAdmin,
        sessionId: id,
        expiresAt,
      },
    })
  },
})
