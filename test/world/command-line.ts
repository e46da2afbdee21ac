// The command line inside this process: the same code as the binary's, without the start of a process for each command.
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Finished } from './binary.ts'
import { requireBuilt } from './built.ts'

await requireBuilt()

// A command line sets ones that fit it, which would stay; also if a second one begins before the first one ends, as after a test that timed out.
const umask = process.umask()
const environment = process.env

const MAIN = pathToFileURL(join(import.meta.dirname, '../../dist/cli/main.js')).href

/** Runs a command line to its end, with this environment and without a terminal. One at a time: the streams are the process's. */
export async function commandLine(args: readonly string[], env: NodeJS.ProcessEnv): Promise<Finished> {
  const { main } = (await import(/* @vite-ignore */ MAIN)) as { main(argv: readonly string[]): Promise<number> }
  const stdout = captured(process.stdout)
  const stderr = captured(process.stderr)
  process.env = { ...env }
  try {
    const code = await main(args)
    return { code, stdout: stdout.text(), stderr: stderr.text() }
  } finally {
    process.env = environment
    process.umask(umask)
    stdout.release()
    stderr.release()
  }
}

function captured(stream: NodeJS.WriteStream) {
  const { write, isTTY } = stream
  const pieces: string[] = []
  stream.isTTY = false as never
  stream.write = ((piece: string | Uint8Array) => {
    pieces.push(String(piece))
    return true
  }) as never
  return {
    text: () => pieces.join(''),
    release() {
      stream.write = write
      stream.isTTY = isTTY
    },
  }
}
