// Which methods and which APIs a path has, for requests that match no route: the router only knows that none matched.
import type { ListenerApi } from '../src/config.ts'

/** What is found at a path. */
export interface PathEntry {
  readonly methods: ReadonlySet<string>
  /** The APIs the path belongs to; undefined stands for those at the root that every listener has. */
  readonly apis: ReadonlySet<ListenerApi | undefined>
}

interface Node {
  readonly byName: Map<string, Node>
  /** Below a parameter, which any segment matches. */
  parameter: Node | undefined
  readonly methods: Set<string>
  readonly apis: Set<ListenerApi | undefined>
}

export class PathTable {
  readonly #root = createNode()

  /** @param path a route's path, with its parameters as `:id` */
  add(path: string, method: string, api: ListenerApi | undefined): void {
    let node = this.#root
    for (const segment of splitSegments(path))
      node = segment.startsWith(':') ? ensureParameter(node) : ensureChild(node, segment)
    node.methods.add(method)
    node.apis.add(api)
  }

  /** What all routes together have at the path of a URL; undefined if there is none. */
  find(url: string): PathEntry | undefined {
    const path = decodePath(url)
    if (path === undefined) return undefined
    const nodes: Node[] = []
    collectNodes(this.#root, splitSegments(path), 0, nodes)
    if (nodes.length === 0) return undefined
    return {
      methods: new Set(nodes.flatMap(({ methods }) => [...methods])),
      apis: new Set(nodes.flatMap(({ apis }) => [...apis])),
    }
  }
}

function createNode(): Node {
  return { byName: new Map(), parameter: undefined, methods: new Set(), apis: new Set() }
}

function ensureChild(node: Node, name: string): Node {
  const child = node.byName.get(name) ?? createNode()
  node.byName.set(name, child)
  return child
}

function ensureParameter(node: Node): Node {
  node.parameter ??= createNode()
  return node.parameter
}

/** The path of a URL; undefined if it cannot be decoded. */
function decodePath(url: string): string | undefined {
  try {
    return decodeURI(url.split(/[?#]/, 1)[0] ?? '')
  } catch {
    return undefined
  }
}

/** Slashes that are doubled, or at the end, do not count: the router passes over them as well. */
function splitSegments(path: string): string[] {
  return path.split('/').filter((segment) => segment !== '')
}

function collectNodes(node: Node, segments: readonly string[], at: number, nodes: Node[]): void {
  const segment = segments[at]
  if (segment === undefined) {
    if (node.methods.size > 0) nodes.push(node)
    return
  }
  const named = node.byName.get(segment)
  if (named) collectNodes(named, segments, at + 1, nodes)
  if (node.parameter) collectNodes(node.parameter, segments, at + 1, nodes)
}
