// The refusal of a password: it shows nothing of whether there is such a user, and counts although its response does not wait for that.
import { beforeAll, describe, expect, it } from 'vitest'
import { errors } from '../../src/foundation/errors.ts'
import { CLIENT } from '../world/controller.ts'
import { allowFaults, expectFaults } from '../world/faults.ts'
import { PASSWORD, People, type Person } from '../world/people.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
let people: People

beforeAll(async () => {
  people = await People.in(world)
})

const lockable = async (maxAttempts: number, values: object = {}) =>
  people.person({ ...values, authPolicyId: await people.policy({ updb: { maxAttempts } }) })

const guess = ({ username }: Pick<Person, 'username'>, password = 'wrong') =>
  world.send({ method: 'POST', path: `${CLIENT}/authenticate?method=password`, body: { username, password } })

const stranger = { username: 'stranger' }

/** Lets the first change that comes from now on wait until it is released; those after it do not. */
function holdNextWrite(): () => void {
  const { store } = world.controller
  const write = store.write.bind(store)
  let release = () => {}
  const isReleased = new Promise<void>((resolve) => {
    release = resolve
  })
  store.write = async (...change) => {
    store.write = write
    await isReleased
    return write(...change)
  }
  return release
}

describe('the response to a wrong password', () => {
  it('waits for no change, whether or not there is such a user', async () => {
    const person = await lockable(3)
    const statuses: number[] = []
    for (const user of [person, stranger]) {
      world.clock.advance(60_000)
      const release = holdNextWrite()
      statuses.push((await guess(user)).status)
      release()
    }

    expect(statuses).toEqual([401, 401])
  })

  it('is the same if the queue is full by then, whether or not there is such a user', async () => {
    const person = await lockable(3)
    const { store } = world.controller
    const requireRoom = store.requireRoom.bind(store)
    const statuses: number[] = []
    for (const user of [person, stranger]) {
      // There is room until the password is compared.
      store.requireRoom = () => {
        store.requireRoom = () => {
          throw errors.SERVER_TOO_MANY_REQUESTS()
        }
      }
      statuses.push((await guess(user)).status)
      store.requireRoom = requireRoom
    }

    expect(statuses).toEqual([429, 429])
  })

  it('is 503 while none can be stored, like that to the right one, whether or not there is such a user', async () => {
    const person = await lockable(3)
    const { store } = world.controller
    const write = store.write.bind(store)
    const attempt = async (...credentials: Parameters<typeof guess>) => {
      const { status } = await guess(...credentials)
      await world.controller.auth.failedSignIns.settle()
      return status
    }
    store.write = () => Promise.reject(errors.STORAGE_UNAVAILABLE())
    // The failure is known only after the response to the first one.
    await attempt(person)
    const statuses = [await attempt(person), await attempt(stranger), await attempt(person, PASSWORD)]
    store.write = write
    await attempt(stranger)
    expectFaults(/a refused sign-in could not be recorded/)
    allowFaults(/503|a request failed/)

    expect(statuses).toEqual([503, 503, 503])
    expect([await attempt(person), await attempt(person, PASSWORD)]).toEqual([401, 200])
  })
})

describe('a wrong password', () => {
  it('changes nothing if the auth policy has no limit, and it is not the first of its source', async () => {
    const person = await lockable(0)
    world.clock.advance(60_000)
    await guess(person)
    await world.system.write(async () => undefined)
    const { position } = world.controller.store

    for (let again = 0; again < 3; again++) await guess(person)

    expect(world.controller.store.position).toBe(position)
  })

  it.each([false, true])(
    'locks before a right one after it is judged, also if its count waits: %s',
    async (isAdmin) => {
      const person = await lockable(1, { isAdmin })
      const release = holdNextWrite()
      const wrong = await guess(person)
      const right = guess(person, PASSWORD)
      release()

      expect([wrong.status, (await right).status]).toEqual([401, 401])
      expect((await people.manage('GET', `/identities/${person.id}`)).disabled).toBe(true)
    },
  )
})
