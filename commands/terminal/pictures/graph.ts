// A picture as nodes and the arrows between them, and its form as plain text.
import { escapeControls } from '../text.ts'

/** The kinds of node: each has a shape and a color of its own. */
export type NodeKind = 'identity' | 'role' | 'policy' | 'service' | 'router' | 'record'

/** The effect of a plan on a part of a picture. */
export type PlannedChange = 'added' | 'changed' | 'removed'

export interface GraphNode {
  readonly id: string
  readonly kind: NodeKind
  /** One entry a line. */
  readonly label: readonly string[]
  /** Whether it exists but does not work now, such as a router that is offline. */
  readonly isInactive?: boolean
  readonly change?: PlannedChange
}

export interface GraphEdge {
  readonly from: string
  readonly to: string
  /** One entry a line. */
  readonly label: readonly string[]
  /** Whether it does not lead on now, for the reason in the label. */
  readonly isRefused?: boolean
  readonly change?: PlannedChange
}

export interface Graph {
  readonly title: string
  readonly nodes: readonly GraphNode[]
  readonly edges: readonly GraphEdge[]
  /** Whether the edges have no direction. */
  readonly isUndirected?: boolean
  /** A sentence on the records that are not in the picture. */
  readonly omitted?: string | undefined
}

/** The sentence for `omitted` on the records beyond `--max`; undefined if there are none. */
export function describeRest(count: number, one: string, many: string): string | undefined {
  return count === 0 ? undefined : `Left out: ${count} more ${count === 1 ? one : many} (--max).`
}

/** Nodes and edges that are added once, however often they are met. */
export class GraphBuilder {
  readonly #nodes = new Map<string, GraphNode>()
  readonly #edges = new Map<string, GraphEdge>()

  addNode(node: GraphNode): void {
    if (!this.#nodes.has(node.id)) this.#nodes.set(node.id, node)
  }

  addEdge(edge: GraphEdge): void {
    const key = JSON.stringify([edge.from, edge.to, edge.label])
    if (!this.#edges.has(key)) this.#edges.set(key, edge)
  }

  build(rest: Omit<Graph, 'nodes' | 'edges'>): Graph {
    return { ...rest, nodes: [...this.#nodes.values()], edges: [...this.#edges.values()] }
  }
}

/** The picture for a terminal: what each node leads to, indented below it. */
export function renderGraphText(graph: Graph): string {
  const { title, nodes, edges, omitted } = graph
  const lines = graph.isUndirected ? listConnections(graph) : listTrees(nodes, edges)
  const rest = omitted === undefined ? [] : ['', omitted]
  return [title, '', ...(lines.length > 0 ? lines : ['  nothing']), ...rest].map(escapeControls).join('\n')
}

function listTrees(nodes: readonly GraphNode[], edges: readonly GraphEdge[]): string[] {
  const byId = new Map(nodes.map((node) => [node.id, node]))
  const outgoing = new Map<string, GraphEdge[]>()
  for (const edge of edges) outgoing.set(edge.from, [...(outgoing.get(edge.from) ?? []), edge])
  const reached = new Set(edges.map(({ to }) => to))
  const list = (node: GraphNode, indent: string): string[] =>
    (outgoing.get(node.id) ?? []).flatMap((edge) => {
      const target = byId.get(edge.to)
      if (!target) return []
      return [`${indent}${edge.isRefused ? '✗' : '→'} ${toLine(target, edge)}`, ...list(target, `${indent}  `)]
    })
  return nodes.filter(({ id }) => !reached.has(id)).flatMap((node) => [node.label.join(', '), ...list(node, '  ')])
}

function listConnections({ nodes, edges }: Graph): string[] {
  const names = new Map(nodes.map(({ id, label }) => [id, label[0] ?? id]))
  return [
    ...nodes.map(({ label, isInactive }) => `${isInactive ? '✗' : '✓'} ${label.join(', ')}`),
    ...edges.map(
      ({ from, to, label, isRefused }) =>
        `  ${names.get(from)} ${isRefused ? '╌' : '─'} ${names.get(to)}  ${label.join(', ')}`,
    ),
  ]
}

function toLine(target: GraphNode, { label }: GraphEdge): string {
  const text = target.label.join(', ')
  return label.length === 0 ? text : `${text}  (${label.join(', ')})`
}
