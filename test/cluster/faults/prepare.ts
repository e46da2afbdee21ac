// The network that callers change while its nodes meet faults.
import { copyOfTemplate, MANAGEMENT, testController } from '../../world/controller.ts'
import type { Prepared } from './callers.ts'

const COUNTED = 2
const POLICIES = 3

/** A directory whose network has an administrator's session, and what callers change in so many seconds. */
export async function prepare(seconds: number): Promise<{ directory: string; prepared: Prepared }> {
  const directory = copyOfTemplate()
  const node = await testController({ directory, isFollowed: false })
  const { token: adminToken } = await node.signIn({ isAdmin: true })
  const create = async (path: string, body: unknown) => {
    const { body: response } = await node.send({ method: 'POST', path: MANAGEMENT + path, body, token: adminToken })
    return response.data.id as string
  }
  const counted = await times(COUNTED, async () => (await node.signIn()).id)
  const { id: leaver } = await node.signIn({ name: 'leaver' })
  const sessions = await times(2 * seconds, async () => {
    const { apiSessionId: id, token } = await node.signInAgain(leaver)
    return { id, token }
  })
  const policies = await times(POLICIES, async (at) => {
    const role = `#role-${at}`
    const { token } = await node.signIn({ roleAttributes: [role.slice(1)] })
    const service = await create('/services', { name: `service ${at}`, encryptionRequired: true })
    const id = await create('/service-policies', {
      ...{ name: `policy ${at}`, type: 'Dial', semantic: 'AnyOf' },
      ...{ identityRoles: [role], serviceRoles: [`@${service}`] },
    })
    return { id, role, token }
  })
  await node.stop()
  return { directory, prepared: { adminToken, sessions, counted, policies } }
}

export async function times<T>(count: number, make: (at: number) => Promise<T>): Promise<T[]> {
  const values: T[] = []
  for (let at = 0; at < count; at++) values.push(await make(at))
  return values
}
