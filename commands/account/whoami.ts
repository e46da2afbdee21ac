// `controller whoami`: shows the identity, the controller and the expiry of the current session.
import { isMachineToken } from '../../src/definitions/resources/tokens.ts'
import { CLIENT_PATH, type Client, EITHER_PATH } from '../client/client.ts'
import { chooseProfile } from '../client/connection.ts'
import { RequestError } from '../foundation/request-error.ts'
import { toTimeText } from '../foundation/times.ts'
import { defineConnectedCommand } from '../framework/connected.ts'

interface CurrentSession {
  readonly id: string
  readonly expiresAt: string
}

interface CurrentIdentity {
  readonly id: string
  readonly name: string
  readonly isAdmin: boolean
}

const TOKEN_SENTENCE = 'The token may do what it was made for, as long as this identity may.'

async function readSession(client: Client): Promise<CurrentSession> {
  return (await client.call('GET', '/current-api-session')).data as CurrentSession
}

/** How many services policies grant to the caller, in words; undefined at a listener without the client API. */
async function countServices(client: Client): Promise<string | undefined> {
  try {
    const { meta } = await client.withBase(CLIENT_PATH).call('GET', '/services?limit=1')
    const { totalCount = 0 } = meta.pagination ?? {}
    return totalCount === 1 ? '1 service' : `${totalCount} services`
  } catch (error) {
    if (error instanceof RequestError && error.status === 404) return undefined
    throw error
  }
}

export const whoami = defineConnectedCommand({
  summary: 'Shows the identity, the controller and the expiry of your session.',
  example: '-o json',
  base: EITHER_PATH,
  async run({ client, flags, print }) {
    const { data: currentIdentity } = await client.call('GET', '/current-identity')
    const { name, profile } = await chooseProfile(flags)
    const isByToken = isMachineToken(profile.token ?? '')
    const session = isByToken ? undefined : await readSession(client)
    const identity = currentIdentity as CurrentIdentity
    const { isAdmin } = identity
    const source = name === undefined ? 'as environment variables say' : `profile ${name}`
    const role = isAdmin ? 'an administrator' : 'not an administrator'
    const end = session ? `If it is not used, the session expires ${toTimeText(session.expiresAt)}.` : TOKEN_SENTENCE
    const services = isAdmin ? undefined : await countServices(client)
    const reach = services === undefined ? '' : `\nPolicies grant you ${services}: controller access`
    await print({
      kind: 'done',
      sentence: `${identity.name}, ${role}, at ${client.target} (${source}). ${end}${reach}`,
      facts: {
        profile: name ?? null,
        url: client.target,
        identityId: identity.id,
        identityName: identity.name,
        isAdmin,
        sessionId: session?.id ?? null,
        expiresAt: session?.expiresAt ?? null,
      },
    })
  },
})
