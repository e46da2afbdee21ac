// `controller whoami`: as whom, where, and until when.
import { defineConnectedCommand } from './connected.ts'
import { chooseProfile } from './connection.ts'
import { toTimeText } from './times.ts'

interface OwnSession {
  readonly id: string
  readonly expiresAt: string
  readonly identity: { readonly id: string; readonly name: string }
}

export const whoami = defineConnectedCommand({
  summary: 'Shows as whom you are signed in, where, and until when.',
  example: '-o json',
  async run({ client, flags, print }) {
    const { data } = await client.call('GET', '/current-api-session')
    const { id, identity, expiresAt } = data as OwnSession
    const { data: own } = await client.call('GET', '/current-identity')
    const { isAdmin } = own as { isAdmin: boolean }
    const { name } = chooseProfile(flags)
    const role = isAdmin ? 'an administrator' : 'not an administrator'
    await print({
      kind: 'done',
      sentence: `${identity.name}, ${role}, at ${client.target} (profile ${name}). Unused, the session ends ${toTimeText(expiresAt)}.`,
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
