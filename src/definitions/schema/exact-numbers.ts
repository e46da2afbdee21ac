// Rejects numbers in JSON text that a double cannot represent, because parsing would change them silently.
import { errors, toPrintable } from '../../foundation/errors.ts'

// A number with fewer digits and no exponent is always exact, so most bodies need no further check.
const MAY_BE_INEXACT = /[\d.]{16}|\d[eE]/
// 17 digits identify every double; a fraction with more digits would lose some.
const MAX_FRACTION_DIGITS = 17

/**
 * @param json JSON text that parses
 * @throws COULD_NOT_PARSE_BODY if a number would be read back as another one
 */
export function assertExactNumbers(json: string): void {
  if (!MAY_BE_INEXACT.test(json)) return
  let at = 0
  while (at < json.length) {
    if (json[at] === '"') {
      at = findStringEnd(json, at)
    } else if (isNumberStart(json[at])) {
      const start = at
      while (at < json.length && isNumberPart(json[at])) at += 1
      assertExact(json.slice(start, at))
    } else {
      at += 1
    }
  }
}

function isNumberStart(character: string | undefined): boolean {
  return character === '-' || isDigit(character)
}

function isNumberPart(character: string | undefined): boolean {
  return isDigit(character) || (character !== undefined && '.eE+-'.includes(character))
}

function isDigit(character: string | undefined): boolean {
  return character !== undefined && character >= '0' && character <= '9'
}

/** The index after the closing quote of the string that begins at `start`. */
function findStringEnd(json: string, start: number): number {
  let at = start + 1
  while (at < json.length && json[at] !== '"') at += json[at] === '\\' ? 2 : 1
  return at + 1
}

function assertExact(token: string): void {
  if (isExactNumber(token)) return
  throw errors.COULD_NOT_PARSE_BODY({
    message: `the number ${toPrintable(token)} is too large or too precise: it would come back as another one`,
  })
}

/** Whether a number is read back as it is written. @param token a number as JSON has it */
export function isExactNumber(token: string): boolean {
  const value = Number(token)
  if (!Number.isFinite(value)) return false
  const original = parseDecimal(token)
  if (isSameNumber(original, parseDecimal(String(value)))) return true
  const isFraction = original.exponent < 0
  return isFraction && value !== 0 && original.digits.length <= MAX_FRACTION_DIGITS
}

/** ±digits × 10^exponent, without zeros at either end of the digits. */
interface Decimal {
  readonly isNegative: boolean
  readonly digits: string
  readonly exponent: number
}

function parseDecimal(token: string): Decimal {
  const isNegative = token.startsWith('-')
  const [mantissa = '', exponent = '0'] = token
    .slice(isNegative ? 1 : 0)
    .toLowerCase()
    .split('e')
  const [whole = '', fraction = ''] = mantissa.split('.')
  const all = whole + fraction
  let start = 0
  let end = all.length
  while (start < end && all[start] === '0') start += 1
  while (end > start && all[end - 1] === '0') end -= 1
  return {
    isNegative,
    digits: all.slice(start, end),
    exponent: Number(exponent) - fraction.length + (all.length - end),
  }
}

function isSameNumber(a: Decimal, b: Decimal): boolean {
  if (a.digits === '' || b.digits === '') return a.digits === b.digits
  return a.isNegative === b.isNegative && a.digits === b.digits && a.exponent === b.exponent
}
