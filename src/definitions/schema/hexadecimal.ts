// Hexadecimal values as people write them: addresses, hashes and fingerprints, with or without separators.

/** Whether a text is digits and separators, and not only separators. */
export function isHexadecimal(text: string): boolean {
  return /^[\da-f:.\-\s]*$/i.test(text) && /[\da-f]/i.test(text)
}

/** Returns the digits alone, in lower case: the form in which such values are compared. */
export function toHexDigits(text: string): string {
  return text.toLowerCase().replace(/[^\da-f]/g, '')
}
