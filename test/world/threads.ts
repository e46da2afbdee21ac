// Builds the threads that the sources start, once for a run: Node.js 20 reads no TypeScript, and a thread that converted each of its
// files took longer to start than to do its work.
import { readdirSync, rmSync } from 'node:fs'
import { basename, join } from 'node:path'
import { rolldown } from 'rolldown'
import { THREADS_VARIABLE } from './built-threads.ts'

const root = join(import.meta.dirname, '../..')

export default async function setup() {
  const names = readdirSync(join(root, 'src'), { recursive: true }).map(String)
  const threads = names.filter((name) => name.endsWith('-thread.ts'))
  // Two folders below package.json, as the sources and dist/ are, and where the libraries with native code are found.
  const folder = join(root, 'node_modules', `.threads-${process.pid}`)
  const bundle = await rolldown({
    input: Object.fromEntries(threads.map((name) => [basename(name, '.ts'), join(root, 'src', name)])),
    platform: 'node',
    external: ['argon2'],
    logLevel: 'warn',
  })
  await bundle.write({ dir: folder, format: 'esm' })
  await bundle.close()
  process.env[THREADS_VARIABLE] = folder
  return () => rmSync(folder, { recursive: true, force: true })
}
