// JSON text in two forms, for the few values that compatible clients expect otherwise than the documents have them.

/**
 * `documented`: as the public documents have it. `compatible`: as OpenZiti's clients know it, where it differs: an empty set is
 * null, or a member is absent. Tools that manage infrastructure compare what they read with what they wrote.
 */
export type JsonForm = 'documented' | 'compatible'

// Control characters, which JSON text has in escaped form only.
const [BEGIN, MIDDLE, END] = ['\u0001', '\u0002', '\u0003']
// biome-ignore lint/suspicious/noControlCharactersInRegex: the marks are control characters
const MARKED = /\u0001([^\u0001\u0002]*)\u0002([^\u0001-\u0003]*)\u0003/g

/** Marks a part of JSON text that differs between the forms. Marked text is JSON once a form is chosen. */
export function inBothForms(documented: string, compatible: string): string {
  return BEGIN + documented + MIDDLE + compatible + END
}

/** An empty set, which compatible clients know as null. */
export const EMPTY_OR_NULL = inBothForms('[]', 'null')

/** Chooses a form of marked text. */
export function toForm(text: string, form: JsonForm): string {
  return text.includes(BEGIN) ? text.replace(MARKED, form === 'documented' ? '$1' : '$2') : text
}

/** A place, in the bytes of the documented form, at which the compatible form has other text. */
export interface FormDifference {
  readonly begin: number
  readonly end: number
  readonly compatible: string
}

/** The documented form of marked text as UTF-8, and the places at which the compatible form differs, in order. */
export function encodeForms(text: string): { readonly bytes: Buffer; readonly differences: readonly FormDifference[] } {
  if (!text.includes(BEGIN)) return { bytes: Buffer.from(text), differences: NONE }
  const differences: FormDifference[] = []
  let [copiedTo, length] = [0, 0]
  for (const { 0: marked, 1: documented = '', 2: compatible = '', index } of text.matchAll(MARKED)) {
    const begin = length + Buffer.byteLength(text.slice(copiedTo, index))
    length = begin + Buffer.byteLength(documented)
    copiedTo = index + marked.length
    differences.push({ begin, end: length, compatible })
  }
  return { bytes: Buffer.from(toForm(text, 'documented')), differences }
}

const NONE: readonly FormDifference[] = []
