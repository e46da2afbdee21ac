// Questions to the person at the terminal, on stderr. Everything that is asked here is also a flag, and nothing waits without a terminal.
import { CommandError, EXIT, makeUsageError } from './exit-codes.ts'
import { readSecret } from './input.ts'

/** Whether somebody could answer. */
export function canPrompt(): boolean {
  return process.stdin.isTTY === true && process.stderr.isTTY === true
}

/** @throws CommandError with exit code 2 where nobody could answer, 130 where somebody walked away */
export async function confirm(question: string, flag: string): Promise<boolean> {
  return (await prompted({ type: 'confirm', message: question, default: false }, flag)) as boolean
}

export async function promptText(question: string, flag: string): Promise<string> {
  return (await prompted({ type: 'input', message: question }, flag)) as string
}

/** A password: from a file, from stdin by `-`, or typed unseen. Never from an argument. */
export async function promptPassword(question: string, file: string | undefined): Promise<string> {
  if (file !== undefined) return readSecret('password-file', file)
  return (await prompted({ type: 'password', message: question, mask: '*' }, '--password-file')) as string
}

interface Question {
  readonly type: 'confirm' | 'input' | 'password'
  readonly message: string
  readonly default?: boolean
  readonly mask?: string
}

async function prompted(question: Question, flag: string): Promise<unknown> {
  if (!canPrompt()) {
    throw makeUsageError(`"${question.message}" cannot be asked without a terminal`, { hint: flag })
  }
  const { default: inquirer } = await import('inquirer')
  const prompt = inquirer.createPromptModule({ output: process.stderr })
  try {
    const { answer } = await prompt([{ ...question, name: 'answer' } as never])
    return answer
  } catch (error) {
    // Ctrl-C, by the name that the library gives it.
    if ((error as Error).name !== 'ExitPromptError') throw error
    throw new CommandError(EXIT.interrupted, 'INTERRUPTED', 'interrupted: nothing was changed')
  }
}
