// Makes text safe for a terminal, so that the content of a record cannot send control sequences.

// Control characters, and the marks that change the direction of text.
// biome-ignore lint/suspicious/noControlCharactersInRegex: these characters must not be printed
const UNSAFE = /[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g
// The same without the characters that JSON escapes.
const UNSAFE_IN_JSON = /[\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g

/** One line, with control characters replaced. */
export function escapeControls(text: string): string {
  return text.replace(UNSAFE, '�')
}

/** Several lines, with control characters replaced. */
export function escapeLines(text: string): string {
  return text.split('\n').map(escapeControls).join('\n')
}

/** Whether the text contains control characters. */
export function hasControls(text: string): boolean {
  return text.search(UNSAFE) !== -1
}

/** The same JSON with control characters escaped. */
export function escapeJson(json: string): string {
  return json.replace(UNSAFE_IN_JSON, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
}
