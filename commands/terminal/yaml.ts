// Renders values as YAML that is safe to print.
import { escapeJson, hasControls } from './text.ts'

/** @param lineWidth the width at which long text is folded; 0 means never */
export async function toYamlText(value: unknown, lineWidth = 80): Promise<string> {
  const { Document, visit } = await import('yaml')
  const document = new Document(value)
  // Control characters can be escaped in double-quoted scalars only.
  visit(document, {
    Scalar(_key, node) {
      if (typeof node.value === 'string' && hasControls(node.value.replace(/[\n\t]/g, ''))) node.type = 'QUOTE_DOUBLE'
    },
  })
  return escapeJson(document.toString({ lineWidth }))
}
