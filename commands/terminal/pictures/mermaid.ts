// Pictures in the language of Mermaid, which pages and repositories draw.
import { escapeControls } from '../text.ts'
import type { Graph, NodeKind } from './graph.ts'

const SHAPES: Readonly<Record<NodeKind, readonly [before: string, after: string]>> = {
  identity: ['([', '])'],
  role: ['([', '])'],
  policy: ['[', ']'],
  service: ['[[', ']]'],
  router: ['{{', '}}'],
  record: ['[', ']'],
}

export function renderMermaid(graph: Graph): string {
  const { title, nodes, edges, isUndirected = false, omitted } = graph
  const numbers = new Map(nodes.map(({ id }, at) => [id, `n${at}`]))
  const [line, dashed] = isUndirected ? ['---', '-.-'] : ['-->', '-.->']
  return [
    // YAML reads a JSON string as it is.
    '---',
    `title: ${JSON.stringify(escapeControls(title))}`,
    '---',
    `flowchart ${isUndirected ? 'TB' : 'LR'}`,
    ...(omitted === undefined ? [] : [`  %% ${escapeControls(omitted)}`]),
    ...nodes.map(({ id, kind, label }) => `  ${numbers.get(id)}${SHAPES[kind][0]}${quote(label)}${SHAPES[kind][1]}`),
    ...edges.flatMap(({ from, to, label, isRefused }) => {
      const [start, end] = [numbers.get(from), numbers.get(to)]
      if (start === undefined || end === undefined) return []
      const text = label.length === 0 ? '' : `|${quote(label)}|`
      return [`  ${start} ${isRefused ? dashed : line}${text} ${end}`]
    }),
    '',
  ].join('\n')
}

/** Several lines as one label. Mermaid reads HTML in labels, and entities that begin with #. */
function quote(lines: readonly string[]): string {
  const escaped = lines.map((line) =>
    escapeControls(line).replace(/["#&<>]/g, (character) => `#${character.charCodeAt(0)};`),
  )
  return `"${escaped.join('<br/>')}"`
}
