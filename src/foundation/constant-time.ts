// Compares secrets, so that the time it takes tells nothing about how much of a guess is right.
import { timingSafeEqual } from 'node:crypto'

/** Whether both are the same bytes; text counts as UTF-8. Only a difference of their lengths shows in the time. */
export function isEqualInConstantTime(a: string | Uint8Array, b: string | Uint8Array): boolean {
  const [left, right] = [toBytes(a), toBytes(b)]
  return left.length === right.length && timingSafeEqual(left, right)
}

function toBytes(value: string | Uint8Array): Uint8Array {
  return typeof value === 'string' ? Buffer.from(value) : value
}
