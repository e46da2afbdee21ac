// Interactive prompts on stderr. Each prompt has an equivalent flag, and without a terminal a command fails instead of waiting.

import { CommandError, EXIT, makeUsageError } from '../foundation/exit-codes.ts'
import { readSecret } from '../foundation/flag-values.ts'
import { RequestError } from '../foundation/request-error.ts'
import { escapeLines } from './text.ts'

/** Whether stdin and stderr are terminals. */
export function canPrompt(): boolean {
  return process.stdin.isTTY === true && process.stderr.isTTY === true
}

/**
 * Asks a yes-or-no question. @throws CommandError with exit code 2 if there is no terminal, 130 if the user interrupts
 */
export async function confirm(question: string, flag: string, isDefault = false): Promise<boolean> {
  return (await prompt({ type: 'confirm', message: question, default: isDefault }, flag)) as boolean
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
export async function promptPassword(
  question: string,
  file: string | undefined,
  flag = 'password-file',
): Promise<string> {
  if (file !== undefined) return readSecret(flag, file)
  return (await prompt({ type: 'password', message: question, mask: '*' }, `--${flag}`)) as string
}

/**
 * Obtains a new password as `promptPassword` does, and passes it to `use`. At a prompt it is typed twice; if `use` rejects it
 * because it breaks a rule, the reason is shown, and the prompt appears again.
 */
export async function promptNewPassword<T>(
  file: string | undefined,
  use: (password: string) => Promise<T>,
  flag = 'password-file',
): Promise<T> {
  if (file !== undefined) return use(await promptPassword('', file, flag))
  for (;;) {
    const password = await promptPassword('New password', undefined, flag)
    let objection = findPasswordObjection(password)
    if (!objection && (await promptPassword('Repeat the new password', undefined, flag)) !== password) {
      objection = 'the two passwords differ'
    }
    if (!objection) {
      try {
        return await use(password)
      } catch (error) {
        if (!(error instanceof RequestError && error.field === 'password')) throw error
        objection = `the password ${error.reason}`
      }
    }
    process.stderr.write(`${escapeLines(objection)}\n`)
  }
}

const MIN_PASSWORD_LENGTH = 5
const MAX_PASSWORD_LENGTH = 100

/** Returns which rule of all passwords is broken. The rules of an auth policy are judged by the controller. */
export function findPasswordObjection(password: string): string | undefined {
  return password.length < MIN_PASSWORD_LENGTH || password.length > MAX_PASSWORD_LENGTH
    ? `the password must have ${MIN_PASSWORD_LENGTH} to ${MAX_PASSWORD_LENGTH} characters`
    : undefined
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
