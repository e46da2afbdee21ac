// Writes the two kinds of events that whole data models mostly consist of, identities and members of policies, straight into one buffer:
// the library of protobuf makes objects and copies of each field, which takes four times as long.
import type { MembershipEvent, ModelIdentity } from '../../src/network/router-model/model-events.ts'

const MIN_BYTES = 64 * 1024

// Tags of fields: their number, and that a length follows (2) or a number (0).
const EVENTS = 0x0a
const FIRST_TEXT = 0x0a
const SECOND_TEXT = 0x12
const THIRD_NUMBER = 0x18
const FOURTH_NUMBER = 0x20
const IDENTITY = 0x52
const POLICY_CHANGE = [0x82, 0x01] as const

/** Whether an identity has no more than its name: most have not. */
export function isPlain(identity: ModelIdentity): boolean {
  const { hostingCost, hostingPrecedence, serviceCosts, servicePrecedences, appData, configs, isDisabled } = identity
  if (hostingCost !== 0 || hostingPrecedence !== 'default' || appData !== '' || isDisabled) return false
  for (const _ in serviceCosts) return false
  for (const _ in servicePrecedences) return false
  for (const _ in configs) return false
  return true
}

/** A part of a whole model, which grows. */
export class ModelWriter {
  #buffer = Buffer.allocUnsafe(MIN_BYTES)
  #length = 0

  get length(): number {
    return this.#length
  }

  /** Takes the part, and begins another one. */
  take(): Buffer {
    const part = this.#buffer.subarray(0, this.#length)
    this.#buffer = Buffer.allocUnsafe(MIN_BYTES)
    this.#length = 0
    return part
  }

  /** Adds events that are encoded already. */
  addEncoded(events: Uint8Array): void {
    this.#reserve(events.length)
    this.#buffer.set(events, this.#length)
    this.#length += events.length
  }

  /** Adds that there is an identity. @param identity one that is plain */
  addIdentity({ id, name }: ModelIdentity): void {
    const identityBytes = sizeOfText(id) + sizeOfText(name)
    const eventBytes = 1 + sizeOfNumber(identityBytes) + identityBytes
    this.#reserve(1 + sizeOfNumber(eventBytes) + eventBytes)
    this.#writeByte(EVENTS)
    this.#writeNumber(eventBytes)
    this.#writeByte(IDENTITY)
    this.#writeNumber(identityBytes)
    this.#writeText(FIRST_TEXT, id)
    this.#writeText(SECOND_TEXT, name)
  }

  /** Adds members of a policy. @param type the number of their kind */
  addMembers({ policyId, ids, action }: MembershipEvent, type: number): void {
    let changeBytes = sizeOfText(policyId) + 2 + (action === 'add' ? 2 : 0)
    for (const id of ids) changeBytes += sizeOfText(id)
    const eventBytes = POLICY_CHANGE.length + sizeOfNumber(changeBytes) + changeBytes
    this.#reserve(1 + sizeOfNumber(eventBytes) + eventBytes)
    this.#writeByte(EVENTS)
    this.#writeNumber(eventBytes)
    for (const byte of POLICY_CHANGE) this.#writeByte(byte)
    this.#writeNumber(changeBytes)
    this.#writeText(FIRST_TEXT, policyId)
    for (const id of ids) this.#writeText(SECOND_TEXT, id)
    this.#writeByte(THIRD_NUMBER)
    this.#writeNumber(type)
    if (action === 'add') {
      this.#writeByte(FOURTH_NUMBER)
      this.#writeNumber(1)
    }
  }

  #reserve(bytes: number): void {
    if (this.#length + bytes <= this.#buffer.length) return
    const grown = Buffer.allocUnsafe(Math.max(2 * this.#buffer.length, this.#length + bytes))
    this.#buffer.copy(grown, 0, 0, this.#length)
    this.#buffer = grown
  }

  #writeByte(byte: number): void {
    this.#buffer[this.#length++] = byte
  }

  /** A number of at most 31 bits, seven bits a byte. */
  #writeNumber(value: number): void {
    let rest = value
    for (; rest > 0x7f; rest >>>= 7) this.#writeByte((rest & 0x7f) | 0x80)
    this.#writeByte(rest)
  }

  #writeText(tag: number, text: string): void {
    this.#writeByte(tag)
    const bytes = Buffer.byteLength(text)
    this.#writeNumber(bytes)
    // Most texts are short ids: a loop is faster than a call into the runtime.
    if (bytes === text.length && bytes < MAX_LOOP) {
      for (let at = 0; at < bytes; at++) this.#buffer[this.#length + at] = text.charCodeAt(at)
    } else this.#buffer.write(text, this.#length)
    this.#length += bytes
  }
}

const MAX_LOOP = 48

function sizeOfNumber(value: number): number {
  let bytes = 1
  for (let rest = value; rest > 0x7f; rest >>>= 7) bytes += 1
  return bytes
}

function sizeOfText(text: string): number {
  const bytes = Buffer.byteLength(text)
  return 1 + sizeOfNumber(bytes) + bytes
}
