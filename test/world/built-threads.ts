// Starts the threads of the sources from the files that were built of them for this run.
import { syncBuiltinESMExports } from 'node:module'
import { basename, join } from 'node:path'
import threads, { type WorkerOptions } from 'node:worker_threads'

/** The environment variable that names the folder with the built threads. */
export const THREADS_VARIABLE = 'CONTROLLER_TEST_THREADS'

const { Worker } = threads
// Read once: a command line that runs in this process has an environment of its own.
const folder = process.env[THREADS_VARIABLE]

threads.Worker = class extends Worker {
  constructor(file: string | URL, options?: WorkerOptions) {
    super(toBuiltFile(file), options)
  }
}
syncBuiltinESMExports()

function toBuiltFile(file: string | URL): string | URL {
  const name = basename(String(file))
  return folder && name.endsWith('-thread.ts') ? join(folder, name.replace(/\.ts$/, '.js')) : file
}
