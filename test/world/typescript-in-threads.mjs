// Lets threads that the sources start run sources too: Node 20 reads no TypeScript, and vitest transforms only what it
// loads itself.
import { register } from 'node:module'
import { isMainThread } from 'node:worker_threads'

if (!isMainThread) register('./typescript-loader.mjs', import.meta.url)
