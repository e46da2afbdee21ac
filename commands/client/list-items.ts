// Parses the items of a list from its envelope while it arrives, with the memory of one item.

/** The `meta` of a list's envelope. */
export interface PageMeta {
  /** The fields that filters of the list can use. */
  readonly filterableFields?: readonly string[]
  readonly pagination?: { readonly limit: number; readonly offset: number; readonly totalCount: number }
}

/** The position of the scanner relative to the list. */
type Place = 'before' | 'inside' | 'behind'

/**
 * Yields the items of `{"data":[…],"meta":{…}}`. `data` must come first, as in the responses of both APIs.
 * @param onMeta called with `meta` after the last item
 * @throws SyntaxError if the text is not such an envelope, or is incomplete
 */
export async function* readListItems(
  body: AsyncIterable<Buffer>,
  onMeta: (meta: PageMeta) => void = () => {},
): AsyncIterable<unknown> {
  const decoder = new TextDecoder()
  let place: Place = 'before'
  // The text that is not parsed yet; `at` is the position of the scan in it, `depth` its nesting below the list.
  let text = ''
  let at = 0
  let start = -1
  let depth = 0
  let isInString = false
  for await (const chunk of body) {
    text += decoder.decode(chunk, { stream: true })
    if (place === 'behind') continue
    if (place === 'before') {
      const head = /^\s*\{\s*"data"\s*:\s*\[/.exec(text)
      if (!head) continue
      place = 'inside'
      at = head[0].length
    }
    for (; at < text.length && place === 'inside'; at++) {
      if (isInString) {
        const quote = text.indexOf('"', at)
        const backslashes = countBackslashesBefore(text, quote === -1 ? text.length : quote, at)
        if (quote === -1) {
          // The next chunk shows how many backslashes there are.
          at = text.length - backslashes
          break
        }
        isInString = backslashes % 2 === 1
        at = quote
        continue
      }
      const code = text.charCodeAt(at)
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
    const consumed = start === -1 ? at : start
    text = text.slice(consumed)
    at -= consumed
    if (start !== -1) start = 0
  }
  if (place !== 'behind') throw new SyntaxError('the list is incomplete')
  const { meta = {} } = JSON.parse(`{"data":[]${text}`) as { meta?: PageMeta }
  onMeta(meta)
}

/** The number of backslashes that stand right before `end`, at `from` or later. */
function countBackslashesBefore(text: string, end: number, from: number): number {
  let start = end
  while (start > from && text.charCodeAt(start - 1) === BACKSLASH) start--
  return end - start
}

const QUOTE = 0x22
const COMMA = 0x2c
const SPACE = 0x20
const OPEN_BRACKET = 0x5b
const BACKSLASH = 0x5c
const CLOSE_BRACKET = 0x5d
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
