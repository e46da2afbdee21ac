// Ranges of versions, as posture checks of operating systems state them: ">=10.0.0 <11.0.0 || 12.x".

const OPERATOR = '(?:=|!=|<=?|>=?)?'
const NUMBER = '(?:0|[1-9]\\d{0,9})'
const PRERELEASE = '(?:-[0-9A-Za-z-]+(?:\\.[0-9A-Za-z-]+)*)?'
const WILD = '[xX*]'
// Three numbers, or fewer numbers followed by wildcards.
const VERSION = `(?:${NUMBER}\\.${NUMBER}\\.${NUMBER}${PRERELEASE}|${NUMBER}\\.${NUMBER}\\.${WILD}|${NUMBER}\\.${WILD}(?:\\.${WILD})?|${WILD})`
const CONDITION = new RegExp(`^${OPERATOR}${VERSION}$`)

/**
 * Whether a text is a range: conditions that all must hold, apart by spaces, and alternatives of those, apart by `||`. A
 * condition is an operator (`=` where there is none) and a version of three parts, the last of which may be wildcards.
 */
export function isVersionRange(text: string): boolean {
  return text.split('||').every((alternative) => {
    const conditions = alternative
      .trim()
      .replace(/([<>=!])\s+/g, '$1')
      .split(/\s+/)
    return conditions.every((condition) => CONDITION.test(condition))
  })
}
