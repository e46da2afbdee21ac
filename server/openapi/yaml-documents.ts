// The OpenAPI documents as YAML, for clients that prefer it.
import { setImmediate } from 'node:timers/promises'
import { stringify } from 'yaml'

const yamlDocuments = new WeakMap<Buffer, Promise<Buffer>>()

/** Returns a JSON document as YAML: rendered at the first request for it, and in one buffer for all requests after it. */
export function toYamlDocument(json: Buffer): Promise<Buffer> {
  let yaml = yamlDocuments.get(json)
  if (!yaml) {
    yaml = renderYaml(json)
    yamlDocuments.set(json, yaml)
  }
  return yaml
}

// Operations are three levels deep (`paths`, path, method), and so are schemas.
const PIECE_DEPTH = 3
const INDENT = '  '

// In quotes, no text is taken for a number or a truth value by tools that read an earlier version of YAML, and it is rendered faster.
const STYLE = { lineWidth: 0, defaultStringType: 'QUOTE_DOUBLE', defaultKeyType: 'PLAIN', compat: 'yaml-1.1' } as const

/** Other requests are served between two pieces, because the whole document takes longer than any of them may wait. */
async function renderYaml(json: Buffer): Promise<Buffer> {
  const pieces: string[] = []
  for (const piece of renderMembers(JSON.parse(json.toString()), PIECE_DEPTH)) {
    pieces.push(piece)
    await setImmediate()
  }
  return Buffer.from(pieces.join(''))
}

/** Renders the members of an object one by one, and the members of those that are objects, down to a depth. */
function* renderMembers(members: object, depth: number): Generator<string> {
  const indent = INDENT.repeat(PIECE_DEPTH - depth)
  for (const [key, value] of Object.entries(members)) {
    if (depth > 1 && isObject(value)) {
      yield indentLines(stringify({ [key]: null }, { ...STYLE, nullStr: '' }).replace(' ', ''), indent)
      yield* renderMembers(value, depth - 1)
    } else yield indentLines(stringify({ [key]: value }, STYLE), indent)
  }
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && Object.keys(value).length > 0
}

/** Empty lines stay empty: in a block of text they mean themselves. */
function indentLines(text: string, indent: string): string {
  return text.replace(/^(?=.)/gm, indent)
}
