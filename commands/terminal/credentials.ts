// The username and password of a first administrator, as a command asks for them and checks them before it sends them.
import { makeUsageError } from '../foundation/exit-codes.ts'
import { canPrompt, findPasswordObjection, promptText } from './prompts.ts'

/** Asks for a username until it is valid. @throws CommandError with exit code 2 if there is no terminal */
export async function promptUsername(question: string): Promise<string> {
  for (;;) {
    const username = await promptText(question, '--username')
    const objection = findUsernameObjection(username)
    if (!objection || !canPrompt()) return username
    process.stderr.write(`${objection}\n`)
  }
}

function findUsernameObjection(username: string): string | undefined {
  return username.trim().length < MIN_USERNAME_LENGTH || username.length > MAX_USERNAME_LENGTH
    ? `the username must have ${MIN_USERNAME_LENGTH} to ${MAX_USERNAME_LENGTH} characters`
    : undefined
}

const MIN_USERNAME_LENGTH = 4
const MAX_USERNAME_LENGTH = 100

/** @throws CommandError with exit code 2 if the username or the password has too few or too many characters */
export function assertCredentials(credentials: { username: string; password: string } | undefined): void {
  if (!credentials) return
  const { username, password: secret } = credentials
  const usernameObjection = findUsernameObjection(username)
  if (usernameObjection) throw makeUsageError(usernameObjection, { field: 'username' })
  const objection = findPasswordObjection(secret)
  if (objection) throw makeUsageError(objection, { field: 'password' })
}
