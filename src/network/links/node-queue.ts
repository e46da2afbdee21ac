// A priority queue of the nodes of a graph: Dijkstra's algorithm takes the nearest one next.

/** A binary heap of node indexes, ordered by distance, in which the distance of a node can be lowered. */
export class NodeQueue {
  readonly #distances: Float64Array
  readonly #heap: Int32Array
  /** Node → where it is in the heap; -1 while it is not. */
  readonly #positions: Int32Array
  #size = 0

  /** @param distances of all nodes; the queue reads them whenever it compares two nodes */
  constructor(distances: Float64Array) {
    this.#distances = distances
    this.#heap = new Int32Array(distances.length)
    this.#positions = new Int32Array(distances.length).fill(-1)
  }

  /** Adds a node, or moves it up if it is there. Called after its distance became less. */
  push(node: number): void {
    const position = this.#positions[node]!
    this.#moveUp(node, position < 0 ? this.#size++ : position)
  }

  /** Removes the nearest node and returns it; -1 if the queue is empty. */
  pop(): number {
    if (this.#size === 0) return -1
    const nearest = this.#heap[0]!
    this.#positions[nearest] = -1
    this.#size -= 1
    if (this.#size > 0) this.#moveDown(this.#heap[this.#size]!)
    return nearest
  }

  #moveUp(node: number, from: number): void {
    const distance = this.#distances[node]!
    let position = from
    while (position > 0) {
      const above = (position - 1) >> 1
      const parent = this.#heap[above]!
      if (this.#distances[parent]! <= distance) break
      this.#put(parent, position)
      position = above
    }
    this.#put(node, position)
  }

  #moveDown(node: number): void {
    const distance = this.#distances[node]!
    let position = 0
    for (;;) {
      let below = 2 * position + 1
      if (below >= this.#size) break
      const right = below + 1
      if (right < this.#size && this.#distances[this.#heap[right]!]! < this.#distances[this.#heap[below]!]!)
        below = right
      const child = this.#heap[below]!
      if (this.#distances[child]! >= distance) break
      this.#put(child, position)
      position = below
    }
    this.#put(node, position)
  }

  #put(node: number, position: number): void {
    this.#heap[position] = node
    this.#positions[node] = position
  }
}
