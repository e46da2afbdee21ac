// `controller login`: signs in, pins the controller's root, and remembers both in a profile.
import { readFileSync } from 'node:fs'
import { Args, Flags } from '@oclif/core'
import { type Bootstrap, readBootstrap } from '../src/client/bootstrap.ts'
import { CLIENT_PATH, Client } from '../src/client/client.ts'
import { httpTransport } from '../src/client/http-transport.ts'
import { Profiles, profileName } from '../src/client/profiles.ts'
import { type FoundRoot, offeredRoot, rootFromPem } from '../src/client/trust.ts'
import { PrintingCommand } from './base.ts'
import { CommandError, EXIT } from './exit-codes.ts'
import { assertCredentials } from './init.ts'
import type { Format } from './output/formats.ts'
import { ask, canAsk, confirm, password } from './prompts.ts'

interface LoginFlags {
  readonly controller?: string | undefined
  readonly profile?: string | undefined
  readonly username?: string | undefined
  readonly 'password-file'?: string | undefined
  readonly 'ca-file'?: string | undefined
  readonly fingerprint?: string | undefined
  readonly yes?: boolean
}

export class Login extends PrintingCommand {
  static override summary = 'Sign in to a controller and make it the current one.'
  static override args = { url: Args.string({ description: 'URL of the controller.', name: 'URL' }) }
  static override flags = {
    bootstrap: Flags.string({
      description: 'The token that a new controller printed: makes the first administrator.',
      helpValue: 'TOKEN',
    }),
    controller: Flags.string({ description: 'The same as the argument URL.' }),
    profile: Flags.string({
      description: 'Name of the profile; host and port unless said otherwise.',
      env: 'CONTROLLER_PROFILE',
    }),
    username: Flags.string({ char: 'u', description: 'Username.' }),
    'password-file': Flags.string({ description: 'File with the password; - is stdin.' }),
    'ca-file': Flags.string({ description: 'File with the root certificate of the controller, as PEM.' }),
    fingerprint: Flags.string({ description: 'SHA-256 of the root certificate.' }),
    yes: Flags.boolean({ char: 'y', description: 'Trust the root certificate that the controller offers.' }),
  }
  static override examples = [
    '<%= config.bin %> <%= command.id %> https://127.0.0.1:1280 --username admin',
    '<%= config.bin %> <%= command.id %> --bootstrap TOKEN --username admin --password-file password.txt',
  ]

  async run(): Promise<void> {
    const { args, flags } = await this.parse(Login)
    const bootstrap = flags.bootstrap === undefined ? undefined : parseBootstrap(flags.bootstrap)
    const profiles = Profiles.open(process.env)
    const url = normalUrl(bootstrap?.url ?? args.url ?? flags.controller ?? currentUrl(profiles, flags.profile))
    const root = await this.#trustedRoot(url, flags, bootstrap?.fingerprint)
    const username =
      flags.username ?? (await ask(bootstrap ? 'Username of the new administrator' : 'Username', '--username'))
    const secret = await password('Password', flags['password-file'])
    assertCredentials({ username, password: secret })
    if (bootstrap) await redeem(url, root, bootstrap, username, secret)
    const session = await signIn(url, root, username, secret)
    const name = flags.profile ?? profileName(url)
    profiles.save(name, { url, rootPem: root.pem, username, token: session.token })
    const { identity, expiresAt } = session
    await this.print(
      {
        kind: 'done',
        sentence: `Signed in to ${url} as ${identity.name} (profile ${name}); the session ends when it is not used until ${expiresAt}.`,
        facts: {
          profile: name,
          url,
          fingerprint: root.fingerprint,
          identityId: identity.id,
          identityName: identity.name,
          expiresAt,
        },
      },
      flags.output as Format | undefined,
    )
  }

  /** The root by which this controller is recognised from now on. */
  async #trustedRoot(url: string, flags: LoginFlags, expected: string | undefined): Promise<FoundRoot> {
    if (flags['ca-file'] !== undefined) return rootOfFile(flags['ca-file'])
    const offered = await offeredRoot(url)
    if (!offered)
      throw new CommandError(EXIT.failed, 'NO_CONTROLLER', `${url} is not a controller: it offers no root certificate`)
    const wanted = (expected ?? flags.fingerprint)?.replaceAll(':', '').toLowerCase()
    if (wanted !== undefined) {
      if (offered.fingerprint === wanted) return offered
      throw new CommandError(
        EXIT.failed,
        'UNTRUSTED',
        `${url} has another root certificate than expected: ${offered.fingerprint}, not ${wanted}`,
      )
    }
    if (flags.yes === true || isPinned(url, offered)) return offered
    if (!canAsk()) {
      throw new CommandError(EXIT.usage, 'USAGE', `the root certificate of ${url} is not known`, {
        hint: '--fingerprint SHA-256, --ca-file FILE, or --yes',
      })
    }
    this.notice(`The root certificate of ${url} has the SHA-256 ${offered.fingerprint}`)
    if (await confirm('Is that the one you expect?', '--yes')) return offered
    throw new CommandError(EXIT.interrupted, 'INTERRUPTED', 'the root certificate was not accepted')
  }
}

function parseBootstrap(text: string): Bootstrap {
  const bootstrap = readBootstrap(text)
  if (!bootstrap) throw new CommandError(EXIT.usage, 'USAGE', 'that is not a bootstrap token', { field: 'bootstrap' })
  return bootstrap
}

function currentUrl(profiles: Profiles, profile: string | undefined): string {
  const name = profile ?? profiles.currentName
  const url = name === undefined ? undefined : profiles.get(name)?.url
  if (url) return url
  throw new CommandError(EXIT.usage, 'USAGE', 'say which controller', { hint: 'controller login https://HOST:PORT' })
}

function normalUrl(given: string): string {
  const text = given.includes('://') ? given : `https://${given}`
  if (!URL.canParse(text) || !text.startsWith('https://')) {
    throw new CommandError(EXIT.usage, 'USAGE', `${given} is not the URL of a controller`, {
      hint: 'https://HOST:PORT',
    })
  }
  return new URL(text).origin
}

function rootOfFile(file: string): FoundRoot {
  const root = rootFromPem(readFileSync(file, 'utf8'))
  if (!root) throw new CommandError(EXIT.usage, 'USAGE', `${file} holds no root certificate`, { field: 'ca-file' })
  return root
}

/** Known already from an earlier sign-in. */
function isPinned(url: string, { fingerprint }: FoundRoot): boolean {
  const profiles = Profiles.open(process.env)
  return profiles.names.some((name) => {
    const profile = profiles.get(name)
    return profile?.url === url && rootFromPem(profile.rootPem)?.fingerprint === fingerprint
  })
}

async function redeem(
  url: string,
  root: FoundRoot,
  { token }: Bootstrap,
  username: string,
  secret: string,
): Promise<void> {
  const client = new Client(httpTransport({ url, rootPem: root.pem }), { base: CLIENT_PATH })
  try {
    await client.call('POST', `/enroll?method=updb&token=${token}`, { username, password: secret })
  } finally {
    await client.close()
  }
}

interface Session {
  readonly token: string
  readonly expiresAt: string
  readonly identity: { readonly id: string; readonly name: string }
}

async function signIn(url: string, root: FoundRoot, username: string, secret: string): Promise<Session> {
  const client = new Client(httpTransport({ url, rootPem: root.pem }))
  try {
    const { data } = await client.call('POST', '/authenticate?method=password', { username, password: secret })
    return data as Session
  } finally {
    await client.close()
  }
}
