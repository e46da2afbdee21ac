// The time, as one value that tests can replace: `new Date()` and `Date.now()` stand in this file only.

/** Milliseconds since 1970-01-01T00:00:00Z. */
export type Instant = number

export interface Clock {
  /** The wall clock. An administrator or the network can set it, so what was measured by it may be wrong. */
  now(): Instant
  /** Milliseconds since an arbitrary moment, for durations: no setting of the wall clock moves it. */
  monotonic(): number
}

/** A hundred years: what is added to a time of today stays a time that dates can say. */
export const MAX_DURATION_MS = 100 * 366 * 24 * 60 * 60_000

export const systemClock: Clock = { now: () => Date.now(), monotonic: () => performance.now() }

// Seconds in their ISO form up to the fraction, by their low bits, because V8 takes ten times as long to format a date as to look
// one up: most times that are shown fall into a few seconds, such as this one, and the one in which a session of now expires.
const RECENT_SECONDS = 256
const recentSeconds: { readonly second: number; readonly text: string }[] = Array.from(
  { length: RECENT_SECONDS },
  () => ({ second: Number.NaN, text: '' }),
)
const FRACTIONS: readonly string[] = Array.from({ length: 1_000 }, (_, ms) => `${String(ms).padStart(3, '0')}Z`)

/** RFC 3339 in UTC with exactly three fraction digits, the form of every date-time on the wire. */
export function toIsoTime(instant: Instant): string {
  const ms = Math.trunc(instant)
  const second = Math.floor(ms / 1_000)
  const at = second & (RECENT_SECONDS - 1)
  let recent = recentSeconds[at]
  if (recent?.second !== second) {
    recent = { second, text: new Date(second * 1_000).toISOString().slice(0, -FRACTION_LENGTH) }
    recentSeconds[at] = recent
  }
  return recent.text + FRACTIONS[ms - second * 1_000]
}

const FRACTION_LENGTH = '000Z'.length

// RFC 3339 §5.6; the fraction may have up to nine digits, the offset may be left out (read as UTC).
const RFC3339 = /^(\d{4})-(\d{2})-(\d{2})[Tt ](\d{2}):(\d{2}):(\d{2})(\.\d{1,9})?([Zz]|[+-]\d{2}:\d{2})?$/

// The range of RFC 3339, whose years have four digits.
export const MIN_INSTANT = utcInstant(0, 1, 1)
export const MAX_INSTANT = utcInstant(9999, 12, 31, 23, 59, 59) + 999

/**
 * Reads an RFC 3339 date-time. Returns undefined if the text is not one, if it names a day that does not exist, or if its
 * year in UTC is not one of 0 to 9999.
 */
export function parseTime(text: string): Instant | undefined {
  const parts = RFC3339.exec(text)
  if (!parts) return undefined
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = parts.slice(1, 7).map(Number)
  const [, , , , , , , fraction = '', zone = 'Z'] = parts
  const [utc, offset] = [toInstant(year, month, day, hour, minute, second), zoneOffset(zone)]
  if (utc === undefined || offset === undefined) return undefined
  const instant = utc + Math.floor(fraction ? Number(`0${fraction}`) * 1000 : 0) - offset
  return instant < MIN_INSTANT || instant > MAX_INSTANT ? undefined : instant
}

/** Returns a moment in UTC; undefined if the day or the time of day does not exist. Months begin with 1. */
export function toInstant(
  year: number,
  month: number,
  day: number,
  hour: number,
  minute: number,
  second: number,
): Instant | undefined {
  if (hour > 23 || minute > 59 || second > 60) return undefined
  // A day that the month does not have falls into another month.
  if (new Date(utcInstant(year, month, day)).getUTCMonth() + 1 !== month) return undefined
  return utcInstant(year, month, day, hour, minute, second)
}

/** Not `Date.UTC`, which takes the years 0 to 99 for those of the twentieth century. */
function utcInstant(year: number, month: number, day: number, hour = 0, minute = 0, second = 0): Instant {
  const date = new Date(0)
  date.setUTCFullYear(year, month - 1, day)
  return date.setUTCHours(hour, minute, second)
}

/** In milliseconds; undefined if it is longer than a day or its minutes are too many. */
function zoneOffset(zone: string): number | undefined {
  if (zone === 'Z' || zone === 'z') return 0
  const sign = zone[0] === '-' ? -1 : 1
  const [hours, minutes] = [Number(zone.slice(1, 3)), Number(zone.slice(4, 6))]
  return hours > 23 || minutes > 59 ? undefined : sign * (hours * 60 + minutes) * 60_000
}
