// `controller login`: signs in, pins the controller's root certificate, and stores both in a profile.
import { readFileSync } from 'node:fs'
import { Flags } from '@oclif/core'
import { type Bootstrap, decodeBootstrap } from '../src/auth/bootstrap-codec.ts'
import { createHttpTransport } from '../src/client/http-transport.ts'
import { optionalArgument } from './arguments.ts'
import { PrintingCommand } from './base.ts'
import { describeChangedRoot } from './changed-root.ts'
import { CLIENT_PATH, Client } from './client/client.ts'
import { Profiles, toProfileName } from './client/profiles.ts'
import { fetchRoot, type RootCertificate, rootFromPem } from './client/trust.ts'
import { normalizeUrl, profileFlag } from './connection.ts'
import { CommandError, EXIT, makeUsageError } from './exit-codes.ts'
import { assertCredentials } from './init.ts'
import { canPrompt, confirm, promptPassword, promptText } from './prompts.ts'
import { toTimeText } from './times.ts'

interface LoginFlags {
  readonly 'ca-file'?: string | undefined
  readonly fingerprint?: string | undefined
  readonly yes?: boolean
}

export class Login extends PrintingCommand {
  static override summary = 'Signs in to a controller, and makes its profile the current one.'
  static override args = {
    url: optionalArgument({ description: 'URL of the controller. Default: the current one.' }),
  }
  static override flags = {
    bootstrap: Flags.string({
      description: 'The bootstrap token that a new controller printed; creates the first administrator.',
      helpValue: 'TOKEN',
    }),
    controller: Flags.string({ description: 'The same as the argument URL.' }),
    profile: { ...profileFlag, description: 'Name of the profile. Default: host and port.' },
    username: Flags.string({ char: 'u', description: 'Username.' }),
    'password-file': Flags.string({ description: 'File with the password; - is stdin.', helpValue: 'FILE' }),
    'mfa-code': Flags.string({ description: 'Code of the second factor, if one is required.', helpValue: 'CODE' }),
    'ca-file': Flags.string({
      description: 'File with the root certificate of the controller, as PEM.',
      helpValue: 'FILE',
    }),
    fingerprint: Flags.string({ description: 'SHA-256 of the root certificate.', helpValue: 'SHA-256' }),
    yes: Flags.boolean({
      char: 'y',
      description: 'Trust the root certificate of a new controller. A changed root certificate requires --fingerprint.',
    }),
  }
  static override examples = [
    '<%= config.bin %> <%= command.id %> https://127.0.0.1:1280 --username admin',
    '<%= config.bin %> <%= command.id %> --bootstrap TOKEN --username admin --password-file password.txt',
  ]

  async run(): Promise<void> {
    const { args, flags } = await this.parse(Login)
    const bootstrap = flags.bootstrap === undefined ? undefined : parseBootstrap(flags.bootstrap)
    const profiles = Profiles.open(process.env)
    const url = normalizeUrl(bootstrap?.url ?? args.url ?? flags.controller ?? getProfileUrl(profiles, flags.profile))
    const root = await this.#resolveTrustedRoot(url, flags, bootstrap?.fingerprint)
    const profileUsername = flags.profile === undefined ? undefined : profiles.get(flags.profile)?.username
    const username =
      flags.username ??
      profileUsername ??
      (await promptText(bootstrap ? 'Username of the new administrator' : 'Username', '--username'))
    const password = await promptPassword('Password', flags['password-file'])
    assertCredentials({ username, password })
    if (bootstrap) await redeemBootstrapToken(url, root, bootstrap, username, password)
    const session = await signInWithPassword(url, root, username, password, flags['mfa-code'])
    const name = flags.profile ?? toProfileName(url)
    const signedInAt = new Date().toISOString()
    profiles.save(name, { url, rootPem: root.pem, username, token: session.token, signedInAt })
    const { identity, expiresAt } = session
    const facts = {
      profile: name,
      url,
      fingerprint: root.fingerprint,
      identityId: identity.id,
      identityName: identity.name,
      expiresAt,
    }
    const sentence = `Signed in to ${url} as ${identity.name} (profile ${name}). If it is not used, the session expires ${toTimeText(expiresAt)}, at ${expiresAt}.`
    await this.print({ kind: 'done', sentence, facts }, flags.output)
  }

  /** The root certificate to pin for this controller. */
  async #resolveTrustedRoot(url: string, flags: LoginFlags, expected: string | undefined): Promise<RootCertificate> {
    if (flags['ca-file'] !== undefined) return readRootFile(flags['ca-file'])
    const offeredRoot = await fetchRoot(url)
    if (!offeredRoot) {
      throw new CommandError(
        EXIT.failed,
        'NO_CONTROLLER',
        `${url} is not a controller: it does not offer a root certificate`,
        {
          hint: 'check the URL',
        },
      )
    }
    const expectedFingerprint = (expected ?? flags.fingerprint)?.replaceAll(':', '').toLowerCase()
    if (expectedFingerprint !== undefined) return assertFingerprint(url, offeredRoot, expectedFingerprint)
    const pinnedFingerprints = listPinnedFingerprints(url)
    if (pinnedFingerprints.includes(offeredRoot.fingerprint)) return offeredRoot
    if (pinnedFingerprints.length > 0) throw rootChangedError(url, offeredRoot, pinnedFingerprints)
    this.notice(`The root certificate of ${url} has the SHA-256 ${offeredRoot.fingerprint}`)
    if (flags.yes === true) return offeredRoot
    if (!canPrompt()) {
      throw makeUsageError(`the root certificate of ${url} is not trusted yet`, {
        hint: '--fingerprint SHA-256, --ca-file FILE, or --yes',
      })
    }
    if (await confirm('Is this the fingerprint that you expect?', '--yes')) return offeredRoot
    throw new CommandError(EXIT.interrupted, 'INTERRUPTED', 'the root certificate was not accepted')
  }
}

/**
 * A root certificate that differs from the pinned one belongs to a controller that was created again, or to an attacker.
 * Only a fingerprint from a trusted place can tell which, so neither a prompt nor `--yes` is enough.
 */
function rootChangedError(url: string, offeredRoot: RootCertificate, pinned: readonly string[]): CommandError {
  const { code, message, hint } = describeChangedRoot(url, offeredRoot.fingerprint, pinned)
  return new CommandError(EXIT.failed, code, message, { hint })
}

function assertFingerprint(url: string, offeredRoot: RootCertificate, expected: string): RootCertificate {
  if (offeredRoot.fingerprint === expected) return offeredRoot
  const message = `unexpected root certificate of ${url}: its SHA-256 is ${offeredRoot.fingerprint}, expected ${expected}`
  throw new CommandError(EXIT.failed, 'UNTRUSTED', message, {
    hint: 'compare it with the fingerprint that "controller serve" prints',
  })
}

function parseBootstrap(text: string): Bootstrap {
  const bootstrap = decodeBootstrap(text)
  if (!bootstrap) throw makeUsageError('--bootstrap is not a bootstrap token', { field: 'bootstrap' })
  return bootstrap
}

function getProfileUrl(profiles: Profiles, profile: string | undefined): string {
  const name = profile ?? profiles.currentName
  const url = name === undefined ? undefined : profiles.get(name)?.url
  if (url) return url
  throw makeUsageError('missing argument: URL', { hint: 'controller login https://HOST:PORT' })
}

function readRootFile(file: string): RootCertificate {
  const root = rootFromPem(readCaFile(file))
  if (!root) throw makeUsageError(`${file} does not contain a root certificate`, { field: 'ca-file' })
  return root
}

function readCaFile(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw makeUsageError(`${file} cannot be read: ${(error as Error).message}`, { field: 'ca-file' })
  }
}

/** The fingerprints that profiles pin for this URL. */
function listPinnedFingerprints(url: string): string[] {
  const profiles = Profiles.open(process.env)
  return profiles.names.flatMap((name) => {
    const profile = profiles.get(name)
    return profile?.url === url ? (rootFromPem(profile.rootPem)?.fingerprint ?? []) : []
  })
}

async function redeemBootstrapToken(
  url: string,
  root: RootCertificate,
  { token }: Bootstrap,
  username: string,
  password: string,
): Promise<void> {
  const client = new Client(createHttpTransport({ url, rootPem: root.pem }), { base: CLIENT_PATH })
  try {
    await client.call('POST', `/enroll?method=updb&token=${token}`, { username, password })
  } finally {
    await client.close()
  }
}

interface Session {
  readonly token: string
  readonly expiresAt: string
  readonly identity: { readonly id: string; readonly name: string }
  readonly authQueries?: readonly { readonly typeId?: string }[]
}

async function signInWithPassword(
  url: string,
  root: RootCertificate,
  username: string,
  password: string,
  code: string | undefined,
): Promise<Session> {
  const transport = createHttpTransport({ url, rootPem: root.pem })
  try {
    const { data } = await new Client(transport).call('POST', '/authenticate?method=password', {
      username,
      password,
    })
    const session = data as Session
    if (!requiresCode(session)) return session
    const factorCode = code ?? (await promptText('Code of the second factor', '--mfa-code'))
    const client = new Client(transport, { token: session.token })
    await client.call('POST', '/authenticate/mfa', { code: factorCode.trim() })
    return (await client.call('GET', '/current-api-session')).data as Session
  } finally {
    await transport.close()
  }
}

function requiresCode({ authQueries = [] }: Session): boolean {
  return authQueries.some(({ typeId }) => typeId === 'MFA' || typeId === 'TOTP')
}
