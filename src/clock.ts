// The time, as one value that tests can replace: `new Date()` and `Date.now()` stand in this file only.

/** Milliseconds since 1970-01-01T00:00:00Z. */
export type Instant = number

export interface Clock {
  now(): Instant
}

export const systemClock: Clock = { now: () => Date.now() }

/** RFC 3339 in UTC with exactly three fraction digits, the form of every date-time on the wire. */
export function isoTime(instant: Instant): string {
  return new Date(instant).toISOString()
}

// RFC 3339 §5.6; the fraction may have up to nine digits, the offset may be left out (read as UTC).
const RFC3339 = /^(\d{4})-(\d{2})-(\d{2})[Tt ](\d{2}):(\d{2}):(\d{2})(\.\d{1,9})?([Zz]|[+-]\d{2}:\d{2})?$/

/** Reads an RFC 3339 date-time; undefined where the text is none, or names a day that does not exist. */
export function parseTime(text: string): Instant | undefined {
  const parts = RFC3339.exec(text)
  if (!parts) return undefined
  const [, year, month, day, hour, minute, second, fraction = '', zone = 'Z'] = parts
  const millis = fraction ? Number(`0${fraction}`) * 1000 : 0
  const utc = Date.UTC(Number(year), Number(month) - 1, Number(day), Number(hour), Number(minute), Number(second))
  const date = new Date(utc)
  if (date.getUTCMonth() + 1 !== Number(month) || date.getUTCDate() !== Number(day) || Number(hour) > 23)
    return undefined
  if (Number(minute) > 59 || Number(second) > 60) return undefined
  return utc + Math.floor(millis) - zoneOffset(zone)
}

function zoneOffset(zone: string): number {
  if (zone === 'Z' || zone === 'z') return 0
  const sign = zone[0] === '-' ? -1 : 1
  return sign * (Number(zone.slice(1, 3)) * 60 + Number(zone.slice(4, 6))) * 60_000
}
