// Loads TypeScript by taking the types out of it.
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { transformSync } from 'rolldown/utils'

export async function load(url, context, nextLoad) {
  if (!url.startsWith('file:') || !url.endsWith('.ts')) return nextLoad(url, context)
  const file = fileURLToPath(url)
  const { code, errors } = transformSync(file, await readFile(file, 'utf8'))
  if (errors.length > 0) throw errors[0]
  return { format: 'module', source: code, shortCircuit: true }
}
