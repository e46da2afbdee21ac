// Limits how many entries a JSON body has before it is parsed: parsing some bytes of `{}` takes many times their memory.
import { invalidError } from '../../foundation/errors.ts'

/** The size that the lists and objects of one depth may have. */
export interface SizeLimit {
  /** The name of the entries, for the error. */
  readonly entries: string
  /** How many entries one list or object may have. */
  readonly maxEach: number
  /** How many entries all lists and objects of this depth may have together; of the last limit, also all that are deeper. */
  readonly maxInAll: number
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const [LIST_START, LIST_END, OBJECT_START, OBJECT_END] = [0x5b, 0x5d, 0x7b, 0x7d] as const

/**
 * Counts entries by commas and brackets, without parsing. Text that is not JSON passes if it has few enough of them.
 * @param json UTF-8
 * @param limits by depth, from the outermost list or object; the last limit counts for all that are deeper
 * @throws COULD_NOT_VALIDATE at the first excess
 */
export function assertBodySize(json: Uint8Array, limits: readonly SizeLimit[]): void {
  const counts: number[] = []
  const totals = limits.map(() => 0)
  const add = () => {
    const level = Math.min(counts.length, limits.length) - 1
    const limit = limits[level]
    if (!limit) return
    const { entries, maxEach, maxInAll } = limit
    const count = (counts.at(-1) as number) + 1
    counts[counts.length - 1] = count
    totals[level] = (totals[level] as number) + 1
    if (count > maxEach) throw invalidError('body', `must have at most ${maxEach} ${entries} in one place`)
    if ((totals[level] as number) > maxInAll)
      throw invalidError('body', `must have at most ${maxInAll} ${entries} in all`)
  }
  for (let at = 0; at < json.length; at++) {
    const byte = json[at] as number
    if (byte === QUOTE) at = findStringEnd(json, at)
    else if (byte === COMMA) add()
    else if (byte === LIST_START || byte === OBJECT_START) {
      counts.push(0)
      // The last entry has no comma. An empty list counts as one entry.
      add()
    } else if (byte === LIST_END || byte === OBJECT_END) counts.pop()
  }
}

/** The index of the closing quote of the string that begins at `start`. */
function findStringEnd(json: Uint8Array, start: number): number {
  let at = start + 1
  while (at < json.length && json[at] !== QUOTE) at += json[at] === BACKSLASH ? 2 : 1
  return at
}
