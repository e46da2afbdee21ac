// Values by the paths of routes, whose parameters any segment matches.

interface Node<V> {
  readonly byName: Map<string, Node<V>>
  /** Below a parameter. */
  parameter: Node<V> | undefined
  value: V | undefined
}

/** A value, and the segments that stand for the parameters of its path, in their order. */
export interface PathMatch<V> {
  readonly value: V
  readonly segments: readonly string[]
}

/** The longest parameter of a path that is accepted, in characters. */
export const MAX_PARAMETER_LENGTH = 256

// Needs no decoding.
const PLAIN_SEGMENT = /^[\w.~-]+$/
const NO_SEGMENTS: readonly string[] = []

export class PathTree<V> {
  readonly #root: Node<V> = createNode()

  /** @param path with its parameters as `:id`. @param create the value of a path that has none yet */
  ensure(path: string, create: () => V): V {
    let node = this.#root
    for (const segment of splitSegments(path))
      node = segment.startsWith(':') ? ensureParameter(node) : ensureChild(node, segment)
    node.value ??= create()
    return node.value
  }

  /** The values of all paths that match. Slashes that are doubled, or at the end, do not count. */
  findAll(path: string): V[] {
    const values: V[] = []
    collectValues(this.#root, splitSegments(path), 0, values)
    return values
  }

  /** The path that has all segments as they are written; undefined if there is none, or if it takes more to tell. */
  findExact(path: string): PathMatch<V> | undefined {
    let node = this.#root
    let segments: string[] | undefined
    for (let from = 1; from > 0; ) {
      const end = path.indexOf('/', from)
      const segment = end < 0 ? path.slice(from) : path.slice(from, end)
      const named = node.byName.get(segment)
      if (named) node = named
      else if (node.parameter && segment.length <= MAX_PARAMETER_LENGTH && PLAIN_SEGMENT.test(segment)) {
        node = node.parameter
        segments ??= []
        segments.push(segment)
      } else return undefined
      from = end + 1
    }
    return node.value === undefined ? undefined : { value: node.value, segments: segments ?? NO_SEGMENTS }
  }
}

function createNode<V>(): Node<V> {
  return { byName: new Map(), parameter: undefined, value: undefined }
}

function ensureChild<V>(node: Node<V>, name: string): Node<V> {
  const child = node.byName.get(name) ?? createNode<V>()
  node.byName.set(name, child)
  return child
}

function ensureParameter<V>(node: Node<V>): Node<V> {
  node.parameter ??= createNode()
  return node.parameter
}

function splitSegments(path: string): string[] {
  return path.split('/').filter((segment) => segment !== '')
}

function collectValues<V>(node: Node<V>, segments: readonly string[], at: number, values: V[]): void {
  const segment = segments[at]
  if (segment === undefined) {
    if (node.value !== undefined) values.push(node.value)
    return
  }
  const named = node.byName.get(segment)
  if (named) collectValues(named, segments, at + 1, values)
  if (node.parameter) collectValues(node.parameter, segments, at + 1, values)
}
