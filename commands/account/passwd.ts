// `controller passwd`: changes your own password.
import { Flags } from '@oclif/core'
import { type Client, EITHER_PATH } from '../client/client.ts'
import { CommandError, EXIT } from '../foundation/exit-codes.ts'
import { assertOneStdin } from '../foundation/flag-values.ts'
import { RequestError } from '../foundation/request-error.ts'
import { defineConnectedCommand } from '../framework/connected.ts'
import { promptNewPassword, promptPassword } from '../terminal/prompts.ts'

const CURRENT = 'current-password-file'
const WRONG_PASSWORD = 'WRONG_PASSWORD'
// How often a wrong current password can be typed.
const MAX_ATTEMPTS = 3

export const passwd = defineConnectedCommand({
  summary: 'Changes your own password. Your other sessions end.',
  flags: {
    [CURRENT]: Flags.string({ description: 'File with the current password; - is stdin.', helpValue: 'FILE' }),
    'password-file': Flags.string({ description: 'File with the new password; - is stdin.', helpValue: 'FILE' }),
  },
  example: '--current-password-file old.txt --password-file new.txt',
  base: EITHER_PATH,
  async run({ client, flags, print }) {
    const currentFile = flags[CURRENT] as string | undefined
    const newFile = flags['password-file'] as string | undefined
    assertOneStdin(flags, [CURRENT, 'password-file'])
    const { id, username } = await findOwnPassword(client)
    // Before the new one is typed: it is checked with a change of nothing.
    const currentPassword = await promptCurrentPassword(currentFile, (typed) =>
      changePassword(client, id, { currentPassword: typed }),
    )
    await promptNewPassword(newFile, (password) => changePassword(client, id, { currentPassword, password }))
    const sentence = `Changed the password of ${username} at ${client.target}. Your other sessions have ended.`
    await print({ kind: 'done', sentence, facts: { url: client.target, username, authenticatorId: id } })
  },
})

interface PasswordAuthenticator {
  readonly id: string
  readonly username: string
}

async function findOwnPassword(client: Client): Promise<PasswordAuthenticator> {
  const filter = encodeURIComponent('method = "updb"')
  const { data } = await client.call('GET', `/current-identity/authenticators?filter=${filter}`)
  const [authenticator] = data as PasswordAuthenticator[]
  if (authenticator) return authenticator
  throw new CommandError(EXIT.notFound, 'NO_PASSWORD', `${client.target}: you sign in without a password`, {
    hint: 'ask an administrator for one: controller enrollment create',
  })
}

/** The current password, which `check` has accepted. At a prompt, a wrong one can be typed again. */
async function promptCurrentPassword(
  file: string | undefined,
  check: (password: string) => Promise<void>,
): Promise<string> {
  for (let attempt = 1; ; attempt++) {
    const password = await promptPassword('Current password', file, CURRENT)
    try {
      await check(password)
      return password
    } catch (error) {
      const isWrong = error instanceof CommandError && error.code === WRONG_PASSWORD
      if (!isWrong || file !== undefined || attempt === MAX_ATTEMPTS) throw error
      process.stderr.write('the current password is wrong: try again\n')
    }
  }
}

async function changePassword(
  client: Client,
  id: string,
  body: { readonly currentPassword: string; readonly password?: string },
): Promise<void> {
  try {
    await client.call('PATCH', `/current-identity/authenticators/${id}`, body)
  } catch (error) {
    if (!(error instanceof RequestError && error.field === 'currentPassword')) throw error
    const message = `${client.target}: the current password is wrong`
    throw new CommandError(EXIT.signInFirst, WRONG_PASSWORD, message, { field: CURRENT, hint: 'run the command again' })
  }
}
