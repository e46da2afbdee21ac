// The bootstrap token of a new controller: how `controller login` obtains it, and redeems it for the first administrator.
import { Flags } from '@oclif/core'
import { type Bootstrap, decodeBootstrap } from '../../src/authentication/administrators/bootstrap-codec.ts'
import { createHttpTransport } from '../../src/client/http-transport.ts'
import { CLIENT_PATH, Client } from '../client/client.ts'
import { REJECTED_TOKEN_CODES, requireUsableToken } from '../client/enrollment-tokens.ts'
import type { PrimaryFactor } from '../client/sign-in.ts'
import type { RootCertificate } from '../client/trust.ts'
import { toCommandLine } from '../foundation/command-lines.ts'
import { CommandError, EXIT, makeUsageError } from '../foundation/exit-codes.ts'
import { RequestError } from '../foundation/request-error.ts'
import { assertCredentials, promptUsername } from '../terminal/credentials.ts'
import { promptNewPassword, promptPassword } from '../terminal/prompts.ts'

/** The command waits at prompts while it holds the token, so no argument contains it: every account can list those. */
export const bootstrapFlags = {
  bootstrap: Flags.boolean({
    description:
      'Create the first administrator with the bootstrap token that a new controller printed; asks for the token.',
    exclusive: ['identity', 'ext-jwt-file'],
  }),
  'bootstrap-file': Flags.string({
    description: 'File with the bootstrap token, instead of a prompt; - is stdin.',
    helpValue: 'FILE',
    exclusive: ['identity', 'ext-jwt-file'],
  }),
}

/** @throws CommandError with exit code 2 if one of the words is a bootstrap token */
export function assertNoTypedToken(argv: readonly string[]): void {
  if (!argv.some((word) => decodeBootstrap(word.slice(word.indexOf('=') + 1)))) return
  throw makeUsageError(
    'the bootstrap token cannot be an argument, because other accounts of this machine can read it',
    {
      hint: 'controller login --bootstrap, which asks for it, or --bootstrap-file FILE; a restart of the controller replaces it',
    },
  )
}

/** The bootstrap token by which to sign in; undefined if no flag requests that. @throws CommandError with exit code 2 */
export async function readBootstrap(flags: {
  readonly bootstrap?: boolean
  readonly 'bootstrap-file'?: string | undefined
}): Promise<Bootstrap | undefined> {
  const file = flags['bootstrap-file']
  if (flags.bootstrap !== true && file === undefined) return undefined
  const bootstrap = decodeBootstrap(await promptPassword('Bootstrap token', file, 'bootstrap-file'))
  if (bootstrap) return bootstrap
  throw makeUsageError('this is not a bootstrap token', {
    field: 'bootstrap-file',
    hint: 'the controller prints one at its start while no administrator can sign in',
  })
}

/** Redeems the bootstrap token. Returns the factor of the administrator that it creates. */
export async function createAdministrator(
  url: string,
  root: RootCertificate,
  bootstrap: Bootstrap,
  flags: { readonly username?: string | undefined; readonly 'password-file'?: string | undefined },
): Promise<PrimaryFactor> {
  if (flags.username === undefined || flags['password-file'] === undefined)
    await requireUsableToken(() => redeemBootstrapToken(url, root, bootstrap, {}))
  const username = flags.username ?? (await promptUsername('Username of the new administrator'))
  return promptNewPassword(flags['password-file'], async (password) => {
    assertCredentials({ username, password })
    await redeemBootstrapToken(url, root, bootstrap, { username, password })
    return { method: 'password', username, password }
  })
}

async function redeemBootstrapToken(
  url: string,
  root: RootCertificate,
  { token }: Bootstrap,
  credentials: { readonly username?: string; readonly password?: string },
): Promise<void> {
  const client = new Client(createHttpTransport({ url, rootPem: root.pem }), { base: CLIENT_PATH })
  try {
    await client.call('POST', `/enroll?method=updb&token=${token}`, credentials)
  } catch (error) {
    if (!(error instanceof RequestError && REJECTED_TOKEN_CODES.includes(error.code))) throw error
    throw new CommandError(EXIT.usage, error.code, `${url}: the bootstrap token was used already, or has expired`, {
      hint: `sign in: ${toCommandLine('login', [url])}; without an administrator, restart the controller, which prints a new token`,
    })
  } finally {
    await client.close()
  }
}
