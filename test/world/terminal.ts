// The real binary on a terminal: what a person sees, and what happens when they type.
import { join } from 'node:path'
import { BINARY, run } from './binary.ts'

export interface Shown {
  /** Everything that was written, colours and cursor movements included. */
  readonly screen: string
  readonly code: number | null
}

/** Question, as a regular expression of Python, and what is typed when it appears. */
export type PromptInput = readonly [question: string, typed: string]

export interface TerminalOptions {
  readonly inputs?: readonly PromptInput[]
  readonly columns?: number
  readonly rows?: number
}

export const ENTER = '\r'
export const CTRL_C = '\u0003'

/** Runs a command of the controller on a terminal, as large as said. */
export async function onTerminal(
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  { inputs = [], columns = 100, rows = 40 }: TerminalOptions = {},
): Promise<Shown> {
  const { stdout } = await runPython({
    argv: [process.execPath, BINARY, ...args],
    env: { ...env, TERM: 'xterm-256color' },
    columns,
    rows,
    inputs,
  })
  return JSON.parse(stdout) as Shown
}

function runPython(spec: object) {
  // Without the packages of the machine, which Python would take as long to find as to start.
  return run('python3', ['-S', join(import.meta.dirname, 'terminal.py')], process.env, { input: JSON.stringify(spec) })
}

/** The text of a screen without colours and cursor movements, and without lines that were wiped. */
export function plainText(screen: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: that wipes a line
  const keptText = screen.replace(/[^\n]*\r\u001b\[K/g, '')
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what a terminal acts on
  return keptText.replace(/\u001b\[[0-9;?]*[A-Za-z]/g, '').replaceAll('\r', '')
}
