// `controller login`: signs in, pins the controller's root certificate, and stores both in a profile.
import { Flags } from '@oclif/core'
import { createHttpTransport } from '../../src/client/http-transport.ts'
import { profileFlag } from '../client/connection.ts'
import { readExternalJwt, toBearerHeaders } from '../client/external-jwt.ts'
import { readIdentityFile } from '../client/identity-files.ts'
import { explainFailedSignIn } from '../client/login-failures.ts'
import { findSecondFactorFile, type Profile, Profiles } from '../client/profiles.ts'
import { readCertificateFactor } from '../client/renewed-session.ts'
import {
  type FactorResult,
  mustEnrollError,
  presentSecondFactors,
  secondFactorFlags,
} from '../client/second-factors.ts'
import { type PrimaryFactor, requestApiSession } from '../client/sign-in.ts'
import { type RootCertificate, rootFromPem } from '../client/trust.ts'
import { toCommandLine } from '../foundation/command-lines.ts'
import { CommandError, makeUsageError } from '../foundation/exit-codes.ts'
import { assertOneStdin } from '../foundation/flag-values.ts'
import { toTimeText } from '../foundation/times.ts'
import { optionalArgument } from '../framework/arguments.ts'
import { PrintingCommand } from '../framework/base.ts'
import { canPrompt, promptPassword, promptText } from '../terminal/prompts.ts'
import { assertNoTypedToken, bootstrapFlags, createAdministrator, readBootstrap } from './bootstrap.ts'
import {
  chooseMethod,
  chooseTarget,
  describeReplacement,
  type LoginFlags,
  type LoginMethod,
  toStoredMethod,
} from './login-method.ts'
import { resolveTrustedRoot } from './root-trust.ts'

export class Login extends PrintingCommand {
  static override summary = 'Signs in to a controller, and makes its profile the current one.'
  static override description = [
    'Signs in with a username and a password, with the certificate of an identity file, with a JWT of an external signer, or with a',
    'browser: at the pages of the controller (--browser), or at the issuer of an external signer (--signer).',
    'If a second factor is required, prompts for its code. A login with an existing profile signs in as that profile did, and',
    'renews its session.',
  ].join('\n')
  static override args = {
    url: optionalArgument({
      description: 'URL of the controller. Default: that of the identity file, else of the current profile.',
    }),
  }
  static override flags = {
    ...bootstrapFlags,
    controller: Flags.string({ description: 'The same as the argument URL.' }),
    profile: {
      ...profileFlag,
      description: 'Name of the profile. Default: the name of the identity file, else host and port.',
    },
    username: Flags.string({ char: 'u', description: 'Username.', exclusive: ['identity'] }),
    'password-file': Flags.string({
      description: 'File with the password; - is stdin.',
      helpValue: 'FILE',
      exclusive: ['identity'],
    }),
    identity: Flags.string({ description: 'Identity file with the certificate to sign in with.', helpValue: 'FILE' }),
    'ext-jwt-file': Flags.string({
      description: 'File with a JWT of an external signer. With --username or --identity it is the second factor.',
      helpValue: 'FILE',
    }),
    browser: Flags.boolean({
      description: 'Sign in with a browser, at the pages of the controller. The session renews itself.',
      exclusive: ['identity', 'username', 'password-file', 'ext-jwt-file', 'signer'],
    }),
    signer: Flags.string({
      description: 'Sign in with a browser, at the issuer of the external JWT signer of this name.',
      helpValue: 'NAME',
      exclusive: ['identity', 'username', 'password-file', 'ext-jwt-file'],
    }),
    'issuer-ca-file': Flags.string({
      description: 'File with the private authority, as PEM, that the issuer of the signer has its certificate from.',
      helpValue: 'FILE',
    }),
    'callback-port': Flags.integer({
      description:
        'Port of this machine at which the browser comes back from the issuer of a signer, to /auth/callback; 0 is any. Default: 20314.',
      helpValue: 'PORT',
      min: 0,
      max: 65535,
    }),
    ...secondFactorFlags,
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
    '<%= config.bin %> <%= command.id %> --bootstrap',
    '<%= config.bin %> <%= command.id %> --identity laptop.json',
    '<%= config.bin %> <%= command.id %> https://127.0.0.1:1280 --browser',
  ]

  async run(): Promise<void> {
    assertNoTypedToken(this.argv)
    const { args, flags } = await this.parse(Login)
    assertOneStdin(flags, ['bootstrap-file', 'password-file', 'ext-jwt-file', 'recovery-code-file'])
    const bootstrap = await readBootstrap(flags)
    const profiles = Profiles.open(process.env)
    const flagFile = flags.identity === undefined ? undefined : readIdentityFile(flags.identity)
    const target = chooseTarget(profiles, flags, bootstrap?.url ?? args.url ?? flags.controller ?? flagFile?.url)
    const { url, name, profile } = target
    const method = chooseMethod(flags, profile, bootstrap !== undefined)
    const root =
      findOwnRoot(flags, method) ??
      (await resolveTrustedRoot(url, flags, bootstrap?.fingerprint, (text) => this.notice(text)))
    const { stored, session, mustEnrollMfa } = bootstrap
      ? await signInOnce(
          url,
          root,
          await createAdministrator(url, root, bootstrap, { ...flags, ...method }),
          method,
          flags,
        )
      : await logIn(url, root, method, flags, (text) => this.notice(text))
    const next = { url, rootPem: root.pem, ...stored, signedInAt: new Date().toISOString() }
    const replacement = describeReplacement(name, profiles.get(name), next)
    profiles.save(name, next)
    if (replacement !== undefined) this.notice(replacement)
    // The session may set up the factor.
    if (mustEnrollMfa) throw mustEnrollError(url, 'controller mfa enroll')
    if (session.isCertExtendRequested && method.identityFile !== undefined) {
      this.notice(`The controller requests a new certificate: ${toCommandLine('renew', [method.identityFile])}`)
    }
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
}

/** The root certificates in the identity file, unless a flag names another root. */
function findOwnRoot(flags: LoginFlags, { identityFile }: LoginMethod): RootCertificate | undefined {
  if (identityFile === undefined || flags['ca-file'] !== undefined || flags.fingerprint !== undefined) return undefined
  const { authoritiesPem } = readIdentityFile(identityFile)
  return authoritiesPem === undefined ? undefined : rootFromPem(authoritiesPem)
}

/** Signs in with a browser, at the pages of the controller or at the issuer of a signer. */
async function logInByBrowser(
  url: string,
  root: RootCertificate,
  method: LoginMethod,
  flags: LoginFlags,
  notice: (text: string) => void,
): Promise<SignedIn> {
  const { showSignIn, signInByBrowser } = await import('./browser-login.ts')
  const transport = createHttpTransport({ url, rootPem: root.pem })
  try {
    if (method.primary !== 'signer') {
      const { session, ...tokens } = await signInByBrowser(transport, notice)
      return { session, mustEnrollMfa: false, stored: { ...toStoredMethod(method, undefined), ...tokens } }
    }
    const { signInAtIssuer } = await import('../client/signer-sign-in.ts')
    const { jwt, grant } = await signInAtIssuer(transport, method.signer, (address) => showSignIn(address, notice))
    const signedIn = await signInOnce(url, root, { method: 'ext-jwt', jwt }, method, flags)
    return { ...signedIn, stored: { ...signedIn.stored, ...(grant ? { grant } : {}) } }
  } finally {
    await transport.close()
  }
}

async function readPrimaryFactor(flags: LoginFlags, method: LoginMethod): Promise<PrimaryFactor> {
  const { primary, identityFile, extJwtFile } = method
  if (primary === 'cert' && identityFile !== undefined) return readCertificateFactor(identityFile)
  if (primary === 'ext-jwt' && extJwtFile !== undefined) {
    return { method: 'ext-jwt', jwt: await readExternalJwt(extJwtFile) }
  }
  const username = method.username ?? (await promptText('Username', '--username'))
  const password = await promptPassword('Password', flags['password-file'])
  return { method: 'password', username, password }
}

interface SignedIn extends FactorResult {
  /** The session, and how it began, as a profile stores them. */
  readonly stored: Omit<Profile, 'url' | 'rootPem'>
}

const MAX_ATTEMPTS = 3

/** Signs in. A password that was typed at a prompt can be corrected. */
async function logIn(
  url: string,
  root: RootCertificate,
  method: LoginMethod,
  flags: LoginFlags,
  notice: (text: string) => void,
): Promise<SignedIn> {
  if (method.primary === 'browser' || method.primary === 'signer')
    return logInByBrowser(url, root, method, flags, notice)
  for (let attempt = 1; ; attempt++) {
    const factor = await readPrimaryFactor(flags, method)
    try {
      return await signInOnce(url, root, factor, method, flags)
    } catch (error) {
      const isTyped = factor.method === 'password' && flags['password-file'] === undefined && canPrompt()
      const isRejected = error instanceof CommandError && error.code === 'INVALID_AUTH'
      if (!isTyped || !isRejected || attempt === MAX_ATTEMPTS) throw error
      process.stderr.write('the username or the password is not accepted: try again\n')
    }
  }
}

async function signInOnce(
  url: string,
  root: RootCertificate,
  factor: PrimaryFactor,
  method: LoginMethod,
  flags: LoginFlags,
): Promise<SignedIn> {
  const result = await signInWithFactors(url, root, factor, method, flags)
  return { ...result, stored: { ...toStoredMethod(method, factor), token: result.session.token } }
}

async function signInWithFactors(
  url: string,
  root: RootCertificate,
  factor: PrimaryFactor,
  method: LoginMethod,
  flags: LoginFlags,
): Promise<FactorResult> {
  const secondFile = findSecondFactorFile(toStoredMethod(method, factor))
  if (factor.method !== 'ext-jwt' && method.extJwtFile === '-') {
    throw makeUsageError('--ext-jwt-file must be a file, because every request reads it', { field: 'ext-jwt-file' })
  }
  const secondJwt = secondFile === undefined ? undefined : await readExternalJwt(secondFile)
  const transport = createHttpTransport({
    url,
    rootPem: root.pem,
    headers: toBearerHeaders(factor.method === 'ext-jwt' ? factor.jwt : secondJwt),
    ...(factor.method === 'cert' ? { clientCertificate: factor.clientCertificate } : {}),
  })
  try {
    return await presentSecondFactors(transport, await requestApiSession(transport, factor), flags, secondJwt)
  } catch (error) {
    throw await explainFailedSignIn(error, factor, url)
  } finally {
    await transport.close()
  }
}
