// Pictures in the language of Graphviz, and as SVG, which Graphviz draws from it.
import { escapeControls } from '../text.ts'
import type { Graph, GraphEdge, GraphNode, NodeKind } from './graph.ts'

const SHAPES: Readonly<Record<NodeKind, string>> = {
  identity: 'ellipse',
  role: 'ellipse',
  policy: 'box',
  service: 'box',
  router: 'hexagon',
  record: 'box',
}

/**
 * Readers draw with their own fonts, of which some are a sixth wider than the one that Graphviz computes with. So the layout leaves room
 * for larger letters than the SVG has.
 */
const FONT_SIZES = { node: 11, edge: 9 } as const
const LAYOUT_SCALE = 1.2

/** The picture as a program of Graphviz reads it. */
export function renderDot(graph: Graph): string {
  const { title, nodes, edges, isUndirected = false, omitted } = graph
  const numbers = new Map(nodes.map(({ id }, at) => [id, `n${at}`]))
  const arrow = isUndirected ? '--' : '->'
  const caption = [title, ...(omitted === undefined ? [] : wrapWords(omitted))]
  return [
    `${isUndirected ? 'graph' : 'digraph'} {`,
    `  graph [rankdir=${isUndirected ? 'TB' : 'LR'} label=${quote(caption)} labelloc=t fontname="Helvetica" bgcolor=white nodesep=0.25 pad=0.2]`,
    `  node [fontname="Helvetica" fontsize=${FONT_SIZES.node * LAYOUT_SCALE} style="filled,rounded" fillcolor=white]`,
    `  edge [fontname="Helvetica" fontsize=${FONT_SIZES.edge * LAYOUT_SCALE}]`,
    ...nodes.map((node) => `  ${numbers.get(node.id)} [${toNodeAttributes(node)}]`),
    ...edges.flatMap((edge) => {
      const [from, to] = [numbers.get(edge.from), numbers.get(edge.to)]
      return from === undefined || to === undefined ? [] : [`  ${from} ${arrow} ${to} [${toEdgeAttributes(edge)}]`]
    }),
    '}',
    '',
  ].join('\n')
}

function toNodeAttributes({ kind, label, isInactive = false, change }: GraphNode): string {
  const style = SHAPES[kind] === 'box' ? 'filled,rounded' : 'filled'
  const classes = [kind, ...(isInactive ? ['inactive'] : []), ...(change ? [change] : [])].join(' ')
  return `label=${quote(label)} shape=${SHAPES[kind]} class="${classes}" style="${isInactive ? `${style},dashed` : style}"`
}

function toEdgeAttributes({ label, isRefused = false, change }: GraphEdge): string {
  const classes = [...(isRefused ? ['refused'] : []), ...(change ? [change] : [])]
  const style = isRefused ? ' style=dashed' : ''
  return `label=${quote(label)}${style}${classes.length > 0 ? ` class="${classes.join(' ')}"` : ''}`
}

const MAX_LINE_LENGTH = 48

function wrapWords(text: string): string[] {
  const lines: string[] = []
  for (const word of text.split(' ')) {
    const last = lines.at(-1)
    if (last === undefined || last.length + word.length >= MAX_LINE_LENGTH) lines.push(word)
    else lines[lines.length - 1] = `${last} ${word}`
  }
  return lines
}

/** Several lines as one string of the language. */
function quote(lines: readonly string[]): string {
  const escaped = lines.map((line) => {
    const text = escapeControls(line)
    const short = text.length > MAX_LINE_LENGTH ? `${text.slice(0, MAX_LINE_LENGTH - 1)}…` : text
    return short.replaceAll('\\', '\\\\').replaceAll('"', '\\"')
  })
  return `"${escaped.join('\\n')}"`
}

/** Colors by class, so that a picture is legible by light and by dark; it has a background, because a page may be of the other kind. */
const STYLE = `
text{fill:#1d2733;font-family:Helvetica,Arial,sans-serif}
.node text{font-size:${FONT_SIZES.node}px}.edge text{font-size:${FONT_SIZES.edge}px}
.node path,.node polygon,.node ellipse{fill:#fff;stroke:#8593a3}
.edge path{stroke:#8593a3}.edge polygon{stroke:#8593a3;fill:#8593a3}.edge text{fill:#55636f}
.identity ellipse,.role ellipse{fill:#e3eefc;stroke:#3b76c4}
.policy path{fill:#fdf3d8;stroke:#b98a1a}
.service path{fill:#e2f4e6;stroke:#3a8a4d}
.router polygon{fill:#eee8fb;stroke:#7454b8}
.inactive text{fill:#8593a3}
.added path,.added polygon,.added ellipse{stroke:#2e8540;stroke-width:2}.edge.added polygon{fill:#2e8540}.edge.added text{fill:#2e8540}
.changed path,.changed polygon,.changed ellipse{stroke:#b07c10;stroke-width:2}
.removed path,.removed polygon,.removed ellipse{stroke:#c0392b;stroke-width:2;stroke-dasharray:5,2}.edge.removed polygon{fill:#c0392b}.edge.removed text{fill:#c0392b}
.refused path{stroke:#c0392b}.refused polygon{stroke:#c0392b;fill:#c0392b}.refused text{fill:#c0392b}
@media (prefers-color-scheme:dark){
.graph>polygon{fill:#161c23}
text{fill:#e6ebf0}.edge text{fill:#aab6c2}
.node path,.node polygon,.node ellipse{fill:#222b35}
.identity ellipse,.role ellipse{fill:#1b3350;stroke:#6ea4e8}
.policy path{fill:#453814;stroke:#d9ad42}
.service path{fill:#1b3b24;stroke:#63b778}
.router polygon{fill:#332852;stroke:#a58be0}
.added path,.added polygon,.added ellipse{stroke:#6fd08a}.edge.added polygon{fill:#6fd08a}.edge.added text{fill:#6fd08a}
.changed path,.changed polygon,.changed ellipse{stroke:#e0b04a}
.removed path,.removed polygon,.removed ellipse{stroke:#f08a7e}.edge.removed polygon{fill:#f08a7e}.edge.removed text{fill:#f08a7e}
.refused path{stroke:#f08a7e}.refused polygon{stroke:#f08a7e;fill:#f08a7e}.refused text{fill:#f08a7e}
}`

/** Draws the picture. The colors follow the reader's choice between light and dark. */
export async function renderSvg(graph: Graph): Promise<string> {
  const { Graphviz } = await import('@hpcc-js/wasm-graphviz')
  const graphviz = await Graphviz.load()
  const svg = graphviz.layout(renderDot(graph), 'svg', 'dot')
  // The declaration and the comment of Graphviz stand before the element.
  const element = svg.slice(svg.indexOf('<svg'))
  const end = element.indexOf('>') + 1
  return `${element.slice(0, end)}\n<style>${STYLE}</style>${element.slice(end)}`
}
