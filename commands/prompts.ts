// Interactive prompts on stderr. Each prompt has an equivalent flag, and without a terminal a command fails instead of waiting.
import { CommandError, EXIT, makeUsageError } from './exit-codes.ts'
import { readSecret } from './input.ts'

/** Whether stdin and stderr are terminals. */
export function canPrompt(): boolean {
  return process.stdin.isTTY === true && process.stderr.isTTY === true
}

/**
 * Asks a yes-or-no question. @throws CommandError with exit code 2 if there is no terminal, 130 if the user interrupts
 */
export async function confirm(question: string, flag: string): Promise<boolean> {
  return (await prompt({ type: 'confirm', message: question, default: false }, flag)) as boolean
}

/**
 * Asks for a line of text. @throws CommandError with exit code 2 if there is no terminal, 130 if the user interrupts
 */
export async function promptText(question: string, flag: string): Promise<string> {
  return (await prompt({ type: 'input', message: question }, flag)) as string
}

/**
 * A password: from a file, from stdin by `-`, or from a masked prompt; never from an argument, which other processes
 * could read.
 */
export async function promptPassword(question: string, file: string | undefined): Promise<string> {
  if (file !== undefined) return readSecret('password-file', file)
  return (await prompt({ type: 'password', message: question, mask: '*' }, '--password-file')) as string
}

interface Question {
  readonly type: 'confirm' | 'input' | 'password'
  readonly message: string
  readonly default?: boolean
  readonly mask?: string
}

async function prompt(question: Question, flag: string): Promise<unknown> {
  if (!canPrompt()) {
    throw makeUsageError(`cannot prompt for "${question.message}" without a terminal`, { hint: flag })
  }
  const { default: inquirer } = await import('inquirer')
  const ask = inquirer.createPromptModule({ output: process.stderr })
  try {
    const { value } = await ask([{ ...question, name: 'value' } as never])
    return value
  } catch (error) {
    // Ctrl-C.
    if ((error as Error).name !== 'ExitPromptError') throw error
    throw new CommandError(EXIT.interrupted, 'INTERRUPTED', 'interrupted: nothing was changed')
  }
}
