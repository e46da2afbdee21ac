// Times as people write and read them.
import { makeUsageError } from './exit-codes.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

const UNITS: Readonly<Record<string, number>> = { s: SECOND, m: MINUTE, h: HOUR, d: DAY }

/** A time as the API takes it, from RFC 3339 or from how far ahead it is: `90m`, `1h30m`, `7d`. */
export function parseInstant(flag: string, given: string, now = Date.now()): string {
  if (/^(\d+[smhd])+$/.test(given)) {
    const ahead = [...given.matchAll(/(\d+)([smhd])/gy)].reduce(
      (sum, [, n, unit]) => sum + Number(n) * (UNITS[unit ?? ''] ?? 0),
      0,
    )
    const at = new Date(now + ahead)
    if (!Number.isNaN(at.getTime())) return at.toISOString()
  } else if (isInstant(given) && !Number.isNaN(Date.parse(given))) return given
  throw makeUsageError(`--${flag} is no time: ${given}`, {
    field: flag,
    hint: '2030-01-31T12:00:00Z, or from now: 90m, 24h, 7d',
  })
}

/** Whether a text is a time as the API writes it. */
export function isInstant(text: string): boolean {
  return /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/.test(text)
}

/** How a person would say a time: `in 3 hours`, `5 minutes ago`, and a date where that is far away. */
export function toTimeText(text: string, now = Date.now()): string {
  const distance = Date.parse(text) - now
  const size = Math.abs(distance)
  if (size < 10 * SECOND) return 'now'
  if (size >= 30 * DAY) return text.slice(0, 10)
  const [unit, length] =
    size < MINUTE ? ['second', SECOND] : size < HOUR ? ['minute', MINUTE] : size < DAY ? ['hour', HOUR] : ['day', DAY]
  const amount = Math.floor(size / (length as number))
  const said = `${amount} ${unit}${amount === 1 ? '' : 's'}`
  return distance > 0 ? `in ${said}` : `${said} ago`
}
