// Which methods and which APIs a path has, for requests that match no route: the router only knows that none matched.
import type { Api } from '../src/config.ts'

/** What is found at a path. */
export interface PathEntry {
  readonly methods: ReadonlySet<string>
  /** The APIs the path belongs to; undefined stands for the root, which belongs to none. */
  readonly apis: ReadonlySet<Api | undefined>
}

interface Node {
  readonly byName: Map<string, Node>
  /** Below a parameter, which any segment matches. */
  parameter: Node | undefined
  readonly methods: Set<string>
  readonly apis: Set<Api | undefined>
}

export class PathTable {
  readonly #root = newNode()

  /** @param path a route's path, with its parameters as `:id` */
  add(path: string, method: string, api: Api | undefined): void {
    let node = this.#root
    for (const segment of segmentsOf(path)) node = segment.startsWith(':') ? parameterOf(node) : childOf(node, segment)
    node.methods.add(method)
    node.apis.add(api)
  }

  /** What all routes together have at the path of a URL; undefined if there is none. */
  find(url: string): PathEntry | undefined {
    const path = decodedPath(url)
    if (path === undefined) return undefined
    const nodes: Node[] = []
    collect(this.#root, segmentsOf(path), 0, nodes)
    if (nodes.length === 0) return undefined
    return {
      methods: new Set(nodes.flatMap(({ methods }) => [...methods])),
      apis: new Set(nodes.flatMap(({ apis }) => [...apis])),
    }
  }
}

function newNode(): Node {
  return { byName: new Map(), parameter: undefined, methods: new Set(), apis: new Set() }
}

function childOf(node: Node, name: string): Node {
  const child = node.byName.get(name) ?? newNode()
  node.byName.set(name, child)
  return child
}

function parameterOf(node: Node): Node {
  node.parameter ??= newNode()
  return node.parameter
}

/** The path of a URL; undefined if it cannot be decoded. */
function decodedPath(url: string): string | undefined {
  try {
    return decodeURI(url.split(/[?#]/, 1)[0] ?? '')
  } catch {
    return undefined
  }
}

/** Slashes that are doubled, or at the end, do not count: the router passes over them as well. */
function segmentsOf(path: string): string[] {
  return path.split('/').filter((segment) => segment !== '')
}

function collect(node: Node, segments: readonly string[], at: number, nodes: Node[]): void {
  const segment = segments[at]
  if (segment === undefined) {
    if (node.methods.size > 0) nodes.push(node)
    return
  }
  const named = node.byName.get(segment)
  if (named) collect(named, segments, at + 1, nodes)
  if (node.parameter) collect(node.parameter, segments, at + 1, nodes)
}
