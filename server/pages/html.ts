// HTML as text that is escaped once: every value of a template is text, unless it is HTML itself.

/** Text that is HTML. */
export class Html {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

type Value = Html | readonly Html[] | string | number | undefined

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** A template of HTML. Values are escaped for elements and for attributes in quotes; undefined is nothing. */
export function html(strings: TemplateStringsArray, ...values: readonly Value[]): Html {
  return new Html(strings.map((text, at) => text + renderValue(values[at])).join(''))
}

function renderValue(value: Value): string {
  if (value === undefined) return ''
  if (value instanceof Html) return value.text
  if (Array.isArray(value)) return value.map((part: Html) => part.text).join('')
  return String(value).replace(/[&<>"']/g, (character) => ENTITIES[character] ?? '')
}
