// Questions to the person at the terminal. Everything that is asked here is also a flag, and nothing waits without a terminal.
import { readFileSync } from 'node:fs'
import { CommandError, EXIT } from './exit-codes.ts'

/** Whether somebody could answer. */
export function canAsk(): boolean {
  return process.stdin.isTTY === true && process.stderr.isTTY === true
}

/** @throws CommandError with exit code 2 where nobody could answer */
export async function confirm(question: string, flag: string): Promise<boolean> {
  requireTerminal(question, flag)
  const { default: inquirer } = await import('inquirer')
  const { answer } = await inquirer.prompt([{ type: 'confirm', name: 'answer', message: question, default: false }])
  return answer as boolean
}

export async function ask(question: string, flag: string): Promise<string> {
  requireTerminal(question, flag)
  const { default: inquirer } = await import('inquirer')
  const { answer } = await inquirer.prompt([{ type: 'input', name: 'answer', message: question }])
  return answer as string
}

/** A password: from a file, from stdin by `-`, or typed unseen. Never from an argument. */
export async function password(question: string, file: string | undefined): Promise<string> {
  if (file !== undefined) return readPassword(file)
  requireTerminal(question, '--password-file')
  const { default: inquirer } = await import('inquirer')
  const { answer } = await inquirer.prompt([{ type: 'password', name: 'answer', message: question, mask: '*' }])
  return answer as string
}

function readPassword(file: string): string {
  try {
    // The line end that editors and `echo` put at the end is not part of it.
    return readFileSync(file === '-' ? 0 : file, 'utf8').replace(/\r?\n$/, '')
  } catch (error) {
    throw new CommandError(EXIT.usage, 'USAGE', `the password file cannot be read: ${(error as Error).message}`, {
      field: 'password-file',
    })
  }
}

function requireTerminal(question: string, flag: string): void {
  if (canAsk()) return
  throw new CommandError(EXIT.usage, 'USAGE', `"${question}" cannot be asked without a terminal`, { hint: flag })
}
