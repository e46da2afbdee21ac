// Sign-ins while more changes wait for the disk than may.
import { describe, expect, it } from 'vitest'
import { ADMIN, CLIENT, MANAGEMENT } from '../world/controller.ts'
import { useController } from '../world/use-controller.ts'

describe('while the queue of changes is full', () => {
  const world = useController({ settings: { 'limits.writeQueue': 1 } })
  let isFull = false

  /** Keeps a change in the queue whenever a request comes: each commit is followed by the next change at once. */
  async function fillQueue(): Promise<void> {
    while (isFull) {
      await world.system.write(async (tx) => {
        await tx.db.selectFrom('identities').select('id').limit(1).execute()
      })
    }
  }

  async function whileFull<T>(work: () => Promise<T>): Promise<T> {
    isFull = true
    const filling = fillQueue()
    try {
      return await work()
    } finally {
      isFull = false
      await filling
    }
  }

  it('sign-ins are told when to come again, before their credentials are looked at', async () => {
    const path = `${CLIENT}/authenticate?method=password`
    const body = { username: ADMIN.username, password: 'wrong' }

    const refused = await whileFull(() => world.send({ method: 'POST', path, body }))

    expect(refused.status).toBe(429)
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0)
    expect((await world.send({ method: 'POST', path, body })).status).toBe(401)
  })

  it('reads are served, and administrators change what they have to', async () => {
    const token = await world.admin()
    const name = 'added meanwhile'

    const [version, created] = await whileFull(async () => [
      await world.send({ method: 'GET', path: `${CLIENT}/version` }),
      await world.send({
        method: 'POST',
        path: `${MANAGEMENT}/services`,
        token,
        body: { name, encryptionRequired: false },
      }),
    ])

    expect([version?.status, created?.status]).toEqual([200, 201])
  })
})
