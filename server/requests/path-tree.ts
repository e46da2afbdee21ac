// Values by the paths of routes, whose parameters any segment matches.

interface Node<V> {
  readonly byName: Map<string, Node<V>>
  /** Below a parameter. */
  parameter: Node<V> | undefined
  value: V | undefined
}

/** The longest parameter of a path that is accepted, in characters. */
export const MAX_PARAMETER_LENGTH = 256

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
