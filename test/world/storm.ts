// Writers that change a network all the time, each its own records, and track what must be true after every response.
import type { Transport } from '../../src/client/transport.ts'
import { MANAGEMENT } from './controller.ts'
import { type Random, random } from './random.ts'

const ATTRIBUTES = ['north', 'south', 'staff', 'web', 'mail']

/** The state that a record must have: its attributes or roles; undefined if it must not exist. */
export type State = Readonly<Record<string, readonly string[]>> | undefined

/** A record that a writer made, or tried to make. */
export interface Tracked {
  readonly plural: string
  readonly name: string
  /** Undefined if the response to its creation never came. */
  id: string | undefined
  /** The states that it may have now: several if a change was sent and not acknowledged. */
  may: readonly State[]
  /** How many changes of it were acknowledged. */
  acknowledgedCount: number
}

/** Writes until the controller is gone; what it tracks can be read meanwhile. @throws if a response is not a success */
export async function storm(
  transport: Transport,
  token: string,
  seed: number,
  tracked: Tracked[] = [],
): Promise<Tracked[]> {
  const dice = random(seed)
  for (let sequence = 0; ; sequence++) {
    const one = dice.oneIn(2) ? dice.pick(tracked.filter(({ may: [state] }) => state)) : undefined
    const record = one ?? newRecord(dice, `storm-${seed}-${sequence}`)
    if (!one) tracked.push(record)
    const isAnswered = await change(transport, token, dice, record)
    if (!isAnswered) return tracked
  }
}

function newRecord(dice: Random, name: string): Tracked {
  const plural = dice.pick(['identities', 'identities', 'services', 'service-policies'])
  return { plural, name, id: undefined, may: [undefined], acknowledgedCount: 0 }
}

/** One change of a record that is there, or its creation. Returns whether it was acknowledged. */
async function change(transport: Transport, token: string, dice: Random, record: Tracked): Promise<boolean> {
  const { plural, name, id, may } = record
  const sets = setsOf(dice, plural)
  const isDelete = id !== undefined && dice.oneIn(4)
  const next: State = isDelete ? undefined : sets
  record.may = [...may, next]
  const method = id === undefined ? 'POST' : isDelete ? 'DELETE' : 'PATCH'
  const path = `${MANAGEMENT}/${plural}${id === undefined ? '' : `/${id}`}`
  const body = id === undefined ? { ...required(plural), name, ...sets } : sets
  const reply = await transport
    .send({ method, path, headers: { 'net-session': token }, ...(isDelete ? {} : { body }) })
    .catch(() => undefined)
  if (!reply) return false
  if (reply.status >= 300) throw new Error(`${method} ${path}: ${reply.text}`)
  record.id ??= JSON.parse(reply.text).data.id as string
  record.may = [next]
  record.acknowledgedCount++
  return true
}

function setsOf(dice: Random, plural: string): Record<string, string[]> {
  if (plural !== 'service-policies') return { roleAttributes: dice.some(ATTRIBUTES, 3).sort() }
  const roles = () =>
    dice
      .some(ATTRIBUTES, 2)
      .map((attribute) => `#${attribute}`)
      .sort()
  return { identityRoles: roles(), serviceRoles: roles() }
}

function required(plural: string): object {
  switch (plural) {
    case 'identities':
      return { type: 'Device', isAdmin: false, enrollment: { ott: true } }
    case 'services':
      return { encryptionRequired: true }
    default:
      return { type: 'Dial', semantic: 'AnyOf' }
  }
}
