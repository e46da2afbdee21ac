// The keys of `controller top`.
import { type TopChoices, views } from './render.ts'

const CTRL_C = '\u0003'
const BACKSPACE = '\u007f'
const ESCAPE = '\u001b'

/** Returns the choices of the user after a key. */
export function applyKey(
  choices: TopChoices,
  key: string,
  isTyping: boolean,
  columnCount: number,
): { readonly choices: TopChoices; readonly isTyping: boolean } | 'quit' {
  if (key === CTRL_C) return 'quit'
  if (isTyping) {
    if (key === '\r' || key === ESCAPE) return { choices, isTyping: false }
    // Arrows, and other keys that are written as several characters.
    if (key.startsWith(ESCAPE)) return { choices, isTyping }
    const filter = key === BACKSPACE ? choices.filter.slice(0, -1) : choices.filter + key.replace(/[^\x20-\x7e]/g, '')
    return { choices: { ...choices, filter }, isTyping: true }
  }
  const at = views.indexOf(choices.view)
  const view = key === '\t' ? views[(at + 1) % views.length] : views[Number(key) - 1]
  if (key === 'q') return 'quit'
  if (view) return { choices: { ...choices, view, sortColumn: 0, isAscending: true }, isTyping }
  if (key === 's')
    return { choices: { ...choices, sortColumn: (choices.sortColumn + 1) % columnCount, isAscending: false }, isTyping }
  if (key === 'r') return { choices: { ...choices, isAscending: !choices.isAscending }, isTyping }
  return { choices, isTyping: key === '/' }
}
