// Takes the items of a list out of its envelope while it arrives, so that a list of any length needs the memory of one item.

/** What the envelope says about the list. */
export interface PageMeta {
  /** What filters of the list may name. */
  readonly filterableFields?: readonly string[]
  readonly pagination?: { readonly limit: number; readonly offset: number; readonly totalCount: number }
}

/** Where the scanner is: before the list, inside of it, or behind it. */
type Place = 'before' | 'inside' | 'behind'

/**
 * The items of `{"data":[…],"meta":{…}}`, parsed one by one. `data` comes first, as both APIs write it.
 * @param onMeta gets what the envelope says of the list, once all items have been taken
 * @throws SyntaxError where the text is no such envelope, or ends too early
 */
export async function* readListItems(
  body: AsyncIterable<Buffer>,
  onMeta: (meta: PageMeta) => void = () => {},
): AsyncIterable<unknown> {
  const decoder = new TextDecoder()
  let place: Place = 'before'
  // What is not yet parsed; `at` is how far into it the scan has come, `depth` how deep that is below the list.
  let text = ''
  let at = 0
  let start = -1
  let depth = 0
  let isInString = false
  for await (const chunk of body) {
    text += decoder.decode(chunk, { stream: true })
    if (place === 'behind') continue
    if (place === 'before') {
      const found = /^\s*\{\s*"data"\s*:\s*\[/.exec(text)
      if (!found) continue
      place = 'inside'
      at = found[0].length
    }
    for (; at < text.length && place === 'inside'; at++) {
      const code = text.charCodeAt(at)
      if (isInString) {
        if (code === BACKSLASH) at++
        else if (code === QUOTE) isInString = false
        continue
      }
      if (code === QUOTE) isInString = true
      else if (code === OPEN_BRACE || code === OPEN_BRACKET) depth++
      else if (depth > 0 && (code === CLOSE_BRACE || code === CLOSE_BRACKET)) depth--
      else if (depth === 0 && (code === COMMA || code === CLOSE_BRACKET)) {
        if (start !== -1) yield JSON.parse(text.slice(start, at))
        start = -1
        if (code === CLOSE_BRACKET) place = 'behind'
        continue
      }
      if (start === -1 && code > SPACE) start = at
    }
    const kept = start === -1 ? at : start
    text = text.slice(kept)
    at -= kept
    if (start !== -1) start = 0
  }
  if (place !== 'behind') throw new SyntaxError('the list ends before its end')
  const { meta = {} } = JSON.parse(`{"data":[]${text}`) as { meta?: PageMeta }
  onMeta(meta)
}

const QUOTE = 0x22
const COMMA = 0x2c
const SPACE = 0x20
const OPEN_BRACKET = 0x5b
const BACKSLASH = 0x5c
const CLOSE_BRACKET = 0x5d
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
