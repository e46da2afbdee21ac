// Parses times that users type, and renders times for users.
import { makeUsageError } from './exit-codes.ts'

const SECOND_MS = 1_000
const MINUTE_MS = 60 * SECOND_MS
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS

/** The age that a time may have when it is shown. */
const LAG_MS = 5 * SECOND_MS

const UNITS_MS: Readonly<Record<string, number>> = { s: SECOND_MS, m: MINUTE_MS, h: HOUR_MS, d: DAY_MS }

/**
 * Returns an RFC 3339 time, from such a time or from a duration from now: `90m`, `1h30m`, `7d`. @throws CommandError
 * with exit code 2
 */
export function parseInstant(flag: string, text: string, now = Date.now()): string {
  const durationMs = readDurationMs(text)
  if (durationMs !== undefined) {
    const at = new Date(now + durationMs)
    if (!Number.isNaN(at.getTime())) return at.toISOString()
  } else if (isInstant(text) && !Number.isNaN(Date.parse(text))) return text
  throw makeUsageError(`--${flag} is not a time: ${text}`, {
    field: flag,
    hint: '2030-01-31T12:00:00Z, or a duration from now such as 90m, 24h or 7d',
  })
}

/** Returns the minutes of a duration: `90m`, `1h30m`, `7d`, and 0. @throws CommandError with exit code 2 if they are not whole */
export function parseMinutes(flag: string, text: string): number {
  const durationMs = text === '0' ? 0 : readDurationMs(text)
  if (durationMs !== undefined && durationMs % MINUTE_MS === 0) return durationMs / MINUTE_MS
  throw makeUsageError(`--${flag} is not a duration in whole minutes: ${text}`, {
    field: flag,
    hint: 'a duration such as 30m, 12h or 7d',
  })
}

/** The milliseconds of a duration; undefined for other text. */
function readDurationMs(text: string): number | undefined {
  if (!/^(\d+[smhd])+$/.test(text)) return undefined
  return [...text.matchAll(/(\d+)([smhd])/gy)].reduce(
    (sum, [, n, unit]) => sum + Number(n) * (UNITS_MS[unit ?? ''] ?? 0),
    0,
  )
}

/** Whether the text has the format of a time in the API. */
export function isInstant(text: string): boolean {
  return /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/.test(text)
}

/** A time relative to now: `in 3 hours`, `5 minutes ago`; a date if it is 30 days away or more. */
export function toTimeText(text: string, now = Date.now()): string {
  const offsetMs = Date.parse(text) - now
  // A time in the future was computed a moment ago: what is half an hour from then is still "in 30 minutes".
  const distanceMs = offsetMs > MINUTE_MS - LAG_MS ? offsetMs + LAG_MS : Math.abs(offsetMs)
  if (distanceMs < 10 * SECOND_MS) return 'now'
  if (distanceMs >= 30 * DAY_MS) return text.slice(0, 10)
  const [unit, unitMs] =
    distanceMs < MINUTE_MS
      ? ['second', SECOND_MS]
      : distanceMs < HOUR_MS
        ? ['minute', MINUTE_MS]
        : distanceMs < DAY_MS
          ? ['hour', HOUR_MS]
          : ['day', DAY_MS]
  const amount = Math.floor(distanceMs / (unitMs as number))
  const amountText = `${amount} ${unit}${amount === 1 ? '' : 's'}`
  return offsetMs > 0 ? `in ${amountText}` : `${amountText} ago`
}
