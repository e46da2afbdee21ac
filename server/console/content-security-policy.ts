// The content security policy of the console: its own files, its controller, and the inline scripts that its pages came with.
import { createHash } from 'node:crypto'

/** The sources of each directive. */
export type Directives = Readonly<Record<string, readonly string[]>>

/**
 * Single-page applications set styles from scripts, and draw from data and blobs. Validators of JSON schemas compile functions from
 * text (`unsafe-eval`): without that, OpenZiti's console saves no config. Scripts that others put into a page do not run either way.
 */
const DEFAULTS: Directives = {
  'default-src': ["'none'"],
  'script-src': ["'self'", "'unsafe-eval'"],
  'style-src': ["'self'", "'unsafe-inline'"],
  'img-src': ["'self'", 'data:', 'blob:'],
  'font-src': ["'self'", 'data:'],
  'connect-src': ["'self'"],
  'worker-src': ["'self'", 'blob:'],
  'manifest-src': ["'self'"],
  'base-uri': ["'self'"],
  'form-action': ["'self'"],
  'frame-ancestors': ["'none'"],
}

/**
 * @param overrides directives of an operator, each in place of the default one
 * @param html the page, whose inline scripts and event handlers are allowed by their hashes
 */
export function buildContentSecurityPolicy(overrides: Directives, html = ''): string {
  const directives: Record<string, readonly string[]> = { ...DEFAULTS, ...overrides }
  const [scripts, handlers] = [listInlineScripts(html).map(toHash), listEventHandlers(html).map(toHash)]
  const hashes = [...scripts, ...(handlers.length > 0 ? ["'unsafe-hashes'", ...handlers] : [])]
  directives['script-src'] = [...(directives['script-src'] ?? []), ...new Set(hashes)]
  return Object.entries(directives)
    .map(([name, sources]) => [name, ...sources].join(' '))
    .join('; ')
}

/**
 * Whether pages load images of other hosts. Servers of map tiles, such as OpenStreetMap's, refuse requests that do not name the
 * origin that they are for.
 */
export function needsReferrer(overrides: Directives): boolean {
  return (overrides['img-src'] ?? []).some((source) => source.includes('//'))
}

function toHash(script: string): string {
  return `'sha256-${createHash('sha256').update(script).digest('base64')}'`
}

/** The contents of the script elements without a source. */
function listInlineScripts(html: string): string[] {
  const scripts: string[] = []
  const lowerCase = html.toLowerCase()
  let at = lowerCase.indexOf('<script')
  while (at !== -1) {
    const start = lowerCase.indexOf('>', at) + 1
    const end = lowerCase.indexOf('</script', start)
    if (start === 0 || end === -1) break
    const attributes = lowerCase.slice(at, start)
    if (!/\ssrc\s?=/.test(attributes) && end > start) scripts.push(html.slice(start, end))
    at = lowerCase.indexOf('<script', end)
  }
  return scripts
}

/** The values of attributes such as `onload`, by which build tools load style sheets late. */
function listEventHandlers(html: string): string[] {
  return [...html.matchAll(/\son[a-z]{1,30}="([^"]*)"/g)].map(([, script = '']) => decodeEntities(script))
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&quot;': '"',
  '&#39;': "'",
  '&lt;': '<',
  '&gt;': '>',
  '&amp;': '&',
}

function decodeEntities(text: string): string {
  return text.replace(/&(?:quot|#39|lt|gt|amp);/g, (entity) => ENTITIES[entity] ?? entity)
}
