// The types of settings: durations, sizes, counts, addresses, and the errors of invalid values.
import { isIP } from 'node:net'
import { isAbsolute } from 'node:path'
import { suggestNearest } from '../foundation/nearest.ts'

/** The source of the value of a setting: a line of the file, an environment variable, or a flag. */
export type SettingSource =
  | { readonly kind: 'file'; readonly path: string; readonly line: number }
  | { readonly kind: 'variable'; readonly name: string }
  | { readonly kind: 'override' }

/** The key of errors that concern no single setting. */
export const WHOLE_FILE = 'file'

/** A setting has an invalid value, or the file of settings cannot be read. */
export class ConfigError extends Error {
  readonly key: string
  /** The problem, as the end of a sentence. */
  readonly reason: string
  readonly source: SettingSource | undefined
  /** The other problems; the message has a line for each. */
  readonly others: readonly ConfigError[]

  /** @param key the setting; `file` for the whole file */
  constructor(key: string, reason: string, source?: SettingSource, others: readonly ConfigError[] = []) {
    const place = source && describePlace(source)
    const subject = key === WHOLE_FILE ? 'the file of settings' : `the setting ${key}`
    const ownMessage = place ? `${subject}, ${place}, ${reason}` : `${subject} ${reason}`
    super([ownMessage, ...others.map(({ message }) => message)].join('\n'))
    this.name = 'ConfigError'
    this.key = key
    this.reason = reason
    this.source = source
    this.others = others
  }
}

function describePlace(source: SettingSource): string | undefined {
  if (source.kind === 'file') return `in line ${source.line} of ${source.path}`
  return source.kind === 'variable' ? `from the environment variable ${source.name}` : undefined
}

const UNITS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const
const SIZES = { B: 1, KiB: 1_024, MiB: 1_048_576 } as const

/** A duration such as `90s` or `1h30m`, in milliseconds; undefined for any other text. */
export function parseDuration(text: string): number | undefined {
  if (!/^(\d+(ms|s|m|h|d))+$/.test(text)) return undefined
  const parts = text.matchAll(/(\d+)(ms|s|m|h|d)/gy)
  return [...parts].reduce((sum, [, amount, unit]) => sum + Number(amount) * UNITS[unit as keyof typeof UNITS], 0)
}

export function durationSetting(standard: string, explain: string, least = '1ms') {
  return {
    explain: `${explain} At least ${least}.`.replace(' At least 1ms.', ''),
    default: standard,
    read: (value: unknown, key: string): number => readDuration(value, key, least),
  }
}

export function readDuration(value: unknown, key: string, least: string): number {
  const milliseconds = typeof value === 'string' ? parseDuration(value) : undefined
  if (milliseconds === undefined) throw new ConfigError(key, 'must be a duration such as 90s, 30m or 12h')
  if (milliseconds < (parseDuration(least) ?? 0)) throw new ConfigError(key, `must be at least ${least}`)
  return milliseconds
}

export function bytesSetting(standard: string, explain: string) {
  return {
    explain,
    default: standard,
    read(value: unknown, key: string): number {
      const [, amount, unit] = /^(\d+)(B|KiB|MiB)$/.exec(String(value)) ?? []
      if (!amount) throw new ConfigError(key, 'must be a size such as 64KiB or 1MiB')
      return Number(amount) * SIZES[unit as keyof typeof SIZES]
    },
  }
}

export function countSetting(standard: number, explain: string) {
  return {
    explain,
    default: standard,
    read(value: unknown, key: string): number {
      if (!Number.isSafeInteger(value) || (value as number) < 1)
        throw new ConfigError(key, 'must be a whole number above 0')
      return value as number
    },
  }
}

export function readWholeNumber(value: unknown, key: string, { min, max }: { min: number; max: number }): number {
  if (Number.isInteger(value) && (value as number) >= min && (value as number) <= max) return value as number
  throw new ConfigError(key, `must be a whole number from ${min} to ${max}`)
}

/** @param toEntry an entry of the list, as YAML, for a text that is typed in place of the list */
export function readList(value: unknown, key: string, toEntry = (text: string) => text): unknown[] {
  if (Array.isArray(value)) return value
  throw new ConfigError(
    key,
    typeof value === 'string' ? `must be a list such as [${toEntry(value)}]` : 'must be a list',
  )
}

export function readSwitch(value: unknown, key: string): boolean {
  if (typeof value !== 'boolean') throw new ConfigError(key, 'must be true or false')
  return value
}

/** The path of a file; undefined for empty text. */
export function readOptionalPath(value: unknown, key: string): string | undefined {
  if (value === '') return undefined
  if (typeof value !== 'string' || !isAbsolute(value)) throw new ConfigError(key, 'must be an absolute path')
  return value
}

/** The URL of a PostgreSQL database; undefined for empty text. */
export function readDatabaseUrl(value: unknown, key: string): string | undefined {
  if (value === '') return undefined
  const [, user, hosts, name] = /^postgres(?:ql)?:\/\/(?:([^/@]*)@)?([^/?@]+)\/([^/?]+)$/.exec(String(value)) ?? []
  if (hosts === undefined || name === undefined)
    throw new ConfigError(key, 'must be the URL of a database such as postgres://user@host/name')
  // Files of settings, and the arguments of processes, are read by more people than a password is meant for.
  if (user?.includes(':')) throw new ConfigError(key, 'must not have a password: cluster.passwordFile names its file')
  return String(value)
}

/** The name of a controller among others; undefined for empty text. */
export function readNodeName(value: unknown, key: string): string | undefined {
  if (value === '') return undefined
  if (typeof value !== 'string' || !/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/.test(value))
    throw new ConfigError(key, 'must be a name of letters, digits, dots and hyphens, with up to 63 characters')
  return value
}

/** A time in milliseconds since 1970; undefined for empty text. */
export function readOptionalTime(value: unknown, key: string): number | undefined {
  if (value === '') return undefined
  // Without a zone, the time would be that of the machine.
  const hasZone = typeof value === 'string' && /^\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)$/.test(value)
  const time = hasZone ? Date.parse(value) : Number.NaN
  if (Number.isNaN(time)) throw new ConfigError(key, 'must be a time with its zone, such as 2026-12-01T00:00:00Z')
  return time
}

export function readChoice<const C extends string>(choices: readonly C[], value: unknown, key: string): C {
  const match = choices.find((choice) => choice === value)
  if (match === undefined) {
    const suggestion = typeof value === 'string' ? suggestNearest(value, choices) : ''
    throw new ConfigError(key, `must be one of ${choices.join(', ')}${suggestion}`)
  }
  return match
}

/** A web origin (RFC 6454) as browsers send it: scheme, host, and port if it is not the usual one. */
export function readOrigin(value: unknown, key: string): string {
  if (typeof value === 'string' && URL.canParse(value)) {
    const { origin, protocol } = new URL(value)
    if (origin === value && (protocol === 'https:' || protocol === 'http:')) return origin
  }
  throw new ConfigError(
    key,
    `holds ${JSON.stringify(value)}, which is not an origin such as https://console.example.com`,
  )
}

/** The sources of each directive of a content security policy. */
export function readDirectives(value: unknown, key: string): Readonly<Record<string, readonly string[]>> {
  const directives = typeof value === 'string' ? value.split(';').map((text) => text.trim().split(/\s+/)) : [['?']]
  const named = directives.filter(([name]) => name !== '')
  if (named.some(([name = '', ...sources]) => !/^[a-z-]+$/.test(name) || /[^\x21-\x7e]/.test(sources.join('')))) {
    throw new ConfigError(key, "must be directives such as connect-src 'self' https://login.example.com")
  }
  return Object.fromEntries(named.map(([name = '', ...sources]) => [name, sources]))
}

export function readHostAndPort(value: unknown, key: string): string {
  const text = String(value)
  const { host, port } = splitAddress(text)
  const isHost = isIP(host) !== 0 || /^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$/.test(host)
  if (!/:\d{1,5}$/.test(text) || !isHost || port > 65535) {
    throw new ConfigError(key, `holds ${JSON.stringify(value)}, which is not of the form host:port`)
  }
  return text
}

/** An address under which others reach the controller. A listener, in contrast, may leave the choice of its port to the system. */
export function readReachableAddress(value: unknown, key: string): string {
  const address = readHostAndPort(value, key)
  if (splitAddress(address).port !== 0) return address
  throw new ConfigError(key, `holds ${JSON.stringify(value)}: name the port that clients or routers connect to`)
}

/** Host and port of `host:port`; an IPv6 host is in brackets. */
export function splitAddress(address: string): { host: string; port: number } {
  const at = address.lastIndexOf(':')
  return { host: address.slice(0, at).replace(/^\[|\]$/g, ''), port: Number(address.slice(at + 1)) }
}
