// Text that is safe to show: what a record holds must not be able to rewrite the terminal it is shown on.

// Control characters, and the marks that turn the direction of writing around.
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not be printed
const UNSAFE = /[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g
// The same without what JSON escapes by itself.
const UNSAFE_IN_JSON = /[\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g

/** One line without anything that a terminal would act on. */
export function escapeControls(text: string): string {
  return text.replace(UNSAFE, '�')
}

/** Several lines of it. */
export function escapeLines(text: string): string {
  return text.split('\n').map(escapeControls).join('\n')
}

/** Whether a text holds anything that a terminal would act on. */
export function hasControls(text: string): boolean {
  return text.search(UNSAFE) !== -1
}

/** JSON text with the same meaning, in which nothing is left that a terminal would act on. */
export function escapeJson(json: string): string {
  return json.replace(UNSAFE_IN_JSON, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
}
