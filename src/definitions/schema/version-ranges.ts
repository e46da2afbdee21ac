// Versions and ranges of versions, as posture checks of operating systems state them: ">=10.0.0 <11.0.0 || 12.x".

const NUMBER = '(?:0|[1-9]\\d{0,9})'
const IDENTIFIERS = '[0-9A-Za-z-]+(?:\\.[0-9A-Za-z-]+)*'
const PRERELEASE = `(?:-(${IDENTIFIERS}))?`
const WILD = '[xX*]'
const VERSION = new RegExp(`^(${NUMBER})\\.(${NUMBER})\\.(${NUMBER})${PRERELEASE}(?:\\+${IDENTIFIERS})?$`)
const OPERATOR = '(=|!=|<=?|>=?)?'
const EXACT = new RegExp(`^${OPERATOR}(${NUMBER}\\.${NUMBER}\\.${NUMBER}${PRERELEASE})$`)
// Fewer than three numbers, followed by wildcards.
const WILDCARD = new RegExp(
  `^${OPERATOR}(?:(${NUMBER})\\.(${NUMBER})\\.${WILD}|(${NUMBER})\\.${WILD}(?:\\.${WILD})?|${WILD})$`,
)

/** A semantic version (semver.org 2.0.0); its build metadata is not part of it, because no comparison reads it. */
export interface Version {
  readonly numbers: readonly [major: number, minor: number, patch: number]
  /** The identifiers after the hyphen; none for a release. */
  readonly prerelease: readonly string[]
}

type Operator = '=' | '!=' | '<' | '<=' | '>' | '>='

/** An operator with the versions from `low` to below `end`, which a wildcard names; only `low` itself if there is no end. */
interface VersionCondition {
  readonly operator: Operator
  readonly low: Version
  /** `all`: every version is inside. */
  readonly end: Version | 'all' | undefined
}

/** Alternatives, each a list of conditions that must all hold. */
export type VersionRange = readonly (readonly VersionCondition[])[]

/** Reads a version of exactly three numbers. Returns undefined if the text is not one. */
export function parseVersion(text: string): Version | undefined {
  const parts = VERSION.exec(text)
  if (!parts) return undefined
  const [, major, minor, patch, prerelease] = parts
  return { numbers: [Number(major), Number(minor), Number(patch)], prerelease: prerelease?.split('.') ?? [] }
}

/**
 * Reads a range: conditions that all must hold, apart by spaces, and alternatives of those, apart by `||`. A condition is an
 * operator (`=` if there is none) and a version of three parts, the last of which may be wildcards. Returns undefined if the
 * text is not a range.
 */
export function parseVersionRange(text: string): VersionRange | undefined {
  const alternatives = text.split('||').map((alternative) =>
    alternative
      .trim()
      .replace(/([<>=!])\s+/g, '$1')
      .split(/\s+/)
      .map(parseCondition),
  )
  return alternatives.every((conditions) => conditions.every((condition) => condition !== undefined))
    ? (alternatives as VersionCondition[][])
    : undefined
}

export function isVersionRange(text: string): boolean {
  return parseVersionRange(text) !== undefined
}

/** Whether a version lies in a range. A prerelease comes before its release (semver.org 2.0.0, 11). */
export function isInVersionRange(version: Version, range: VersionRange): boolean {
  return range.some((conditions) => conditions.every((condition) => holds(condition, version)))
}

/**
 * Writes a range as others that hold where it does if one of them holds, of exact versions only: programs differ in how they read
 * wildcards, and alternatives inside of a range. None if no version lies in the range.
 */
export function writeWithoutWildcards(range: VersionRange): string[] {
  return range.flatMap((conditions) => {
    const bounds = conditions.flatMap(({ operator, low, end }) => writeBounds(operator, low, end) ?? 'never')
    if (bounds.includes('never')) return []
    const texts = listGaps(conditions).map((gap) => [...bounds, ...gap].join(' '))
    return texts.map((text) => (text === '' ? '>=0.0.0' : text))
  })
}

/** The bounds of a condition, without those of a wildcard that it excludes; undefined if no version meets it. */
function writeBounds(operator: Operator, low: Version, end: VersionCondition['end']): string[] | undefined {
  if (end === undefined) return [operator + writeVersion(low)]
  if (end === 'all') return operator === '=' || operator === '<=' || operator === '>=' ? [] : undefined
  const [atLeastLow, belowLow] = [`>=${writeVersion(low)}`, `<${writeVersion(low)}`]
  const [atLeastEnd, belowEnd] = [`>=${writeVersion(end)}`, `<${writeVersion(end)}`]
  const bounds = { '=': [atLeastLow, belowEnd], '!=': [], '<': [belowLow], '<=': [belowEnd] }
  return { ...bounds, '>': [atLeastEnd], '>=': [atLeastLow] }[operator]
}

/** The gaps between the wildcards that conditions exclude: a single one without bounds if there are none. */
function listGaps(conditions: VersionRange[number]): string[][] {
  const holes = conditions
    .flatMap(({ operator, low, end }) => (operator === '!=' && typeof end === 'object' ? { low, end } : []))
    .sort((a, b) => compareVersions(a.low, b.low))
  const gaps: string[][] = []
  let from: Version | undefined
  for (const { low, end } of holes) {
    gaps.push([...(from ? [`>=${writeVersion(from)}`] : []), `<${writeVersion(low)}`])
    if (!from || compareVersions(from, end) < 0) from = end
  }
  return [...gaps, from ? [`>=${writeVersion(from)}`] : []]
}

function writeVersion({ numbers, prerelease }: Version): string {
  return prerelease.length === 0 ? numbers.join('.') : `${numbers.join('.')}-${prerelease.join('.')}`
}

function parseCondition(text: string): VersionCondition | undefined {
  const exact = EXACT.exec(text)
  if (exact) {
    const [, operator, version = ''] = exact
    return { operator: toOperator(operator), low: parseVersion(version) as Version, end: undefined }
  }
  const wildcard = WILDCARD.exec(text)
  if (!wildcard) return undefined
  const [, operator, majorOfTwo, minor, majorAlone] = wildcard
  const common = { operator: toOperator(operator) }
  if (minor !== undefined) {
    const [major, next] = [Number(majorOfTwo), Number(minor) + 1]
    return { ...common, low: toRelease(major, Number(minor)), end: toRelease(major, next) }
  }
  if (majorAlone === undefined) return { ...common, low: toRelease(0, 0), end: 'all' }
  return { ...common, low: toRelease(Number(majorAlone), 0), end: toRelease(Number(majorAlone) + 1, 0) }
}

function toOperator(text: string | undefined): Operator {
  return (text ?? '=') as Operator
}

function toRelease(major: number, minor: number): Version {
  return { numbers: [major, minor, 0], prerelease: [] }
}

function holds({ operator, low, end }: VersionCondition, version: Version): boolean {
  const position = comparePosition(version, low, end)
  switch (operator) {
    case '=':
      return position === 0
    case '!=':
      return position !== 0
    case '<':
      return position < 0
    case '<=':
      return position <= 0
    case '>':
      return position > 0
    case '>=':
      return position >= 0
  }
}

/** Negative below the versions of a condition, 0 inside, positive above. */
function comparePosition(version: Version, low: Version, end: VersionCondition['end']): number {
  if (end === 'all') return 0
  const fromLow = compareVersions(version, low)
  if (end === undefined || fromLow < 0) return fromLow
  return compareVersions(version, end) < 0 ? 0 : 1
}

/** Negative if `a` comes before `b`, 0 if neither comes first, positive if `b` does. */
function compareVersions(a: Version, b: Version): number {
  for (let at = 0; at < 3; at++) {
    const difference = (a.numbers[at] as number) - (b.numbers[at] as number)
    if (difference !== 0) return difference
  }
  return comparePrereleases(a.prerelease, b.prerelease)
}

function comparePrereleases(a: readonly string[], b: readonly string[]): number {
  // A release comes after its prereleases.
  if (a.length === 0 || b.length === 0) return b.length - a.length
  for (let at = 0; at < Math.min(a.length, b.length); at++) {
    const difference = compareIdentifiers(a[at] as string, b[at] as string)
    if (difference !== 0) return difference
  }
  return a.length - b.length
}

/** Numbers come before words. */
function compareIdentifiers(a: string, b: string): number {
  const [isNumberA, isNumberB] = [/^\d+$/.test(a), /^\d+$/.test(b)]
  if (isNumberA && isNumberB) return Number(a) - Number(b)
  if (isNumberA !== isNumberB) return isNumberA ? -1 : 1
  if (a === b) return 0
  return a < b ? -1 : 1
}
