// `controller enroll`: turns a one-time token into a credential, and writes the identity file that clients read.
import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { Flags } from '@oclif/core'
import { type ClientCertificate, createHttpTransport, UnreachableError } from '../../src/client/http-transport.ts'
import { computeFingerprint } from '../../src/pki/certificates.ts'
import { toKeyPem } from '../../src/pki/pem.ts'
import { encodeSigningRequest, generateClientKey, isCertificateOf } from '../../src/pki/request-encoding.ts'
import { CLIENT_PATH, Client } from '../client/client.ts'
import {
  type EnrollmentToken,
  explainRejectedToken,
  REJECTED_TOKEN_CODES,
  readEnrollmentToken,
  requireUsableToken,
  verifyEnrollmentToken,
} from '../client/enrollment-tokens.ts'
import { makeIdentityFile, renderIdentityFile } from '../client/identity-files.ts'
import { type CertificateFlags, readOwnCertificate } from '../client/own-certificates.ts'
import { Profiles, toProfileName } from '../client/profiles.ts'
import { type FileTarget, findFileTarget, ReservedFile } from '../client/reserved-file.ts'
import { rootFromPem } from '../client/trust.ts'
import { toCommandLine } from '../foundation/command-lines.ts'
import { CommandError, EXIT, makeUsageError } from '../foundation/exit-codes.ts'
import { describeFileError } from '../foundation/file-errors.ts'
import { readStdin } from '../foundation/flag-values.ts'
import { delayInterrupt } from '../foundation/interrupts.ts'
import { RequestError } from '../foundation/request-error.ts'
import { toTimeText } from '../foundation/times.ts'
import { requiredArgument } from '../framework/arguments.ts'
import { PrintingCommand } from '../framework/base.ts'
import { promptNewPassword } from '../terminal/prompts.ts'
import { confirmReplacement } from '../terminal/replacement.ts'

interface EnrollFlags extends CertificateFlags {
  readonly out?: string | undefined
  readonly name?: string | undefined
  readonly 'password-file'?: string | undefined
  readonly force?: boolean
  readonly output?: unknown
}

export class Enroll extends PrintingCommand {
  static override summary = 'Enrolls an identity: turns a one-time token into a credential.'
  static override description = [
    'Verifies first that the controller at the address in the token issued it. Then, by the method of the token:',
    'ott creates a key, obtains a certificate for it, and writes both to an identity file;',
    'ottca and ca enroll the certificate of the flags --cert and --key, or --pkcs12, and write it to an identity file;',
    'updb sets the password of a username.',
  ].join('\n')
  static override args = { file: requiredArgument({ description: 'File with the enrollment token; - is stdin.' }) }
  static override flags = {
    out: Flags.string({
      description: 'The identity file to write. Default: the file of the token, with the ending .json.',
      helpValue: 'FILE',
    }),
    force: Flags.boolean({ description: 'Replace an existing identity file.' }),
    cert: Flags.string({
      description: 'Certificate of another authority, as PEM, with the certificates between it and that authority.',
      helpValue: 'FILE',
      dependsOn: ['key'],
    }),
    key: Flags.string({
      description: 'Private key of the certificate, as PEM.',
      helpValue: 'FILE',
      dependsOn: ['cert'],
    }),
    pkcs12: Flags.string({
      description: 'PKCS #12 bundle with the certificate and its RSA key, instead of --cert and --key.',
      helpValue: 'FILE',
      exclusive: ['cert', 'key'],
    }),
    'pkcs12-password-file': Flags.string({
      description: 'File with the password of the bundle; - is stdin.',
      helpValue: 'FILE',
      dependsOn: ['pkcs12'],
    }),
    name: Flags.string({
      description: 'Name of the new identity, if the token is of the method ca.',
      helpValue: 'NAME',
    }),
    'password-file': Flags.string({
      description: 'File with the new password, if the token is of the method updb; - is stdin.',
      helpValue: 'FILE',
    }),
  }
  static override examples = [
    '<%= config.bin %> <%= command.id %> laptop.jwt',
    '<%= config.bin %> <%= command.id %> laptop.jwt --cert laptop.crt --key laptop.key',
  ]

  async run(): Promise<void> {
    const { args, flags } = await this.parse(Enroll)
    const token = await readEnrollmentToken(args.file === '-' ? 'the token' : args.file, await readTokenText(args.file))
    assertFlagsFit(token, args.file, flags)
    try {
      await (token.method === 'updb'
        ? this.#enrollPassword(token, flags)
        : this.#enrollCertificate(token, args.file, flags))
    } catch (error) {
      throw explainFailure(error, token)
    }
  }

  async #enrollCertificate(token: EnrollmentToken, tokenFile: string, flags: EnrollFlags): Promise<void> {
    const target = await this.#chooseTarget(tokenFile, flags)
    const ownCertificate = token.method === 'ott' ? undefined : await readOwnCertificate(flags)
    const authoritiesPem = await verifyEnrollmentToken(token)
    const file = ReservedFile.create(target)
    try {
      const clientCertificate = await delayInterrupt(
        'the enrollment is under way, and its token can be used only once: press Ctrl-C again to give up',
        async () => {
          const issued = ownCertificate
            ? await presentCertificate(token, authoritiesPem, ownCertificate, flags.name)
            : await requestCertificate(token, authoritiesPem)
          file.commit(renderIdentityFile(makeIdentityFile(token.url, issued, authoritiesPem)))
          return issued
        },
      )
      await this.#printEnrolled(token, target.path, clientCertificate, flags)
    } finally {
      file.release()
    }
  }

  #printEnrolled(
    { url, method, subject }: EnrollmentToken,
    path: string,
    { certificatePem }: ClientCertificate,
    flags: EnrollFlags,
  ): Promise<void> {
    const certificate = new X509Certificate(certificatePem)
    const expiresAt = new Date(certificate.validTo).toISOString()
    const sentence = [
      `Enrolled at ${url}. The identity file is ${path}; its certificate expires ${toTimeText(expiresAt)}.`,
      '',
      `Next: ${toCommandLine('login', ['--identity', path])}`,
    ].join('\n')
    const facts = {
      identityFile: path,
      url,
      method,
      ...(method === 'ca' ? {} : { identityId: subject }),
      fingerprint: computeFingerprint(certificate),
      expiresAt,
    }
    return this.print({ kind: 'done', sentence, facts }, flags.output)
  }

  /** The file to write. @throws CommandError if it exists, unless `--force` is set or the user confirms */
  async #chooseTarget(tokenFile: string, { out, force }: EnrollFlags): Promise<FileTarget> {
    const path = out ?? (tokenFile === '-' ? undefined : `${tokenFile.replace(/\.jwt$/i, '')}.json`)
    if (path === undefined) throw makeUsageError('missing flag: --out, because the token comes from stdin')
    const target = findFileTarget(path)
    if (target.status && !force) await confirmReplacement(path, 'contains a key', 'out')
    return target
  }

  async #enrollPassword(token: EnrollmentToken, flags: EnrollFlags): Promise<void> {
    const { url } = token
    const authoritiesPem = await verifyEnrollmentToken(token)
    if (flags['password-file'] === undefined)
      await requireUsableToken(() => redeem(token, authoritiesPem, { body: {} }))
    const username = await promptNewPassword(flags['password-file'], async (password) => {
      const data = await redeem(token, authoritiesPem, { body: { password } })
      return typeof data.username === 'string' ? data.username : undefined
    })
    pinRoot(url, authoritiesPem, username)
    const login = toCommandLine('login', [url, ...(username === undefined ? [] : ['--username', username])])
    const who = username === undefined ? '' : ` ${username}`
    const sentence = [`Enrolled${who} at ${url} with a password.`, '', `Next: ${login}`].join('\n')
    const facts = { url, method: token.method, identityId: token.subject, username: username ?? null }
    await this.print({ kind: 'done', sentence, facts }, flags.output)
  }
}

async function readTokenText(file: string): Promise<string> {
  if (file === '-') return readStdin('the enrollment token')
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw makeUsageError(`${file} cannot be read: ${describeFileError(error, file)}`)
  }
}

/** The methods of the tokens for which a flag has a meaning. */
const FLAG_METHODS: Readonly<Record<string, readonly string[]>> = {
  out: ['ott', 'ottca', 'ca'],
  cert: ['ottca', 'ca'],
  pkcs12: ['ottca', 'ca'],
  name: ['ca'],
  'password-file': ['updb'],
}

function assertFlagsFit({ source, method }: EnrollmentToken, file: string, flags: EnrollFlags): void {
  for (const [flag, methods] of Object.entries(FLAG_METHODS)) {
    const isSet = flags[flag as keyof EnrollFlags] !== undefined
    if (isSet && !methods.includes(method)) {
      throw makeUsageError(`--${flag} has no meaning for ${source}, whose method is ${method}`, { field: flag })
    }
  }
  if (file === '-' && (flags['password-file'] === '-' || flags['pkcs12-password-file'] === '-')) {
    throw makeUsageError('the token and the password cannot both come from stdin')
  }
}

interface Redemption {
  readonly body?: unknown
  readonly contentType?: string
  readonly clientCertificate?: ClientCertificate
}

/** Redeems the token. @returns the data of the response */
async function redeem(
  { url, method, secret }: EnrollmentToken,
  authoritiesPem: string,
  { body, contentType, clientCertificate }: Redemption,
): Promise<Record<string, unknown>> {
  const options = { url, rootPem: authoritiesPem, ...(clientCertificate ? { clientCertificate } : {}) }
  const client = new Client(createHttpTransport(options), { base: CLIENT_PATH })
  const query = new URLSearchParams({ method, ...(secret === undefined ? {} : { token: secret }) })
  const headers: Record<string, string> = contentType === undefined ? {} : { 'content-type': contentType }
  try {
    return ((await client.call('POST', `/enroll?${query}`, body, headers)).data ?? {}) as Record<string, unknown>
  } finally {
    await client.close()
  }
}

/** `ott`: a certificate for a new key. */
async function requestCertificate(token: EnrollmentToken, authoritiesPem: string): Promise<ClientCertificate> {
  const key = generateClientKey()
  const body = encodeSigningRequest(token.subject, key)
  const { cert } = await redeem(token, authoritiesPem, { body, contentType: 'application/x-pem-file' })
  if (typeof cert !== 'string' || !isCertificateOf(key, cert)) {
    const message = `${token.url}: the response does not contain a certificate for the new key`
    throw new CommandError(EXIT.failed, 'UNEXPECTED_RESPONSE', message)
  }
  return { certificatePem: cert, keyPem: toKeyPem(key) }
}

/** `ottca` and `ca`: the certificate that the user brings becomes the credential. */
async function presentCertificate(
  token: EnrollmentToken,
  authoritiesPem: string,
  clientCertificate: ClientCertificate,
  name: string | undefined,
): Promise<ClientCertificate> {
  const content = name === undefined ? { body: '', contentType: 'text/plain' } : { body: { name } }
  try {
    await redeem(token, authoritiesPem, { ...content, clientCertificate })
  } catch (error) {
    // The response to this request, or to an earlier one, may have been lost.
    if (!(error instanceof RequestError) || !(await isEnrolled(token, authoritiesPem, clientCertificate))) throw error
    process.stderr.write('The certificate is enrolled already.\n')
  }
  return clientCertificate
}

/** Whether the certificate signs in as the identity of the token. */
async function isEnrolled(
  { url, method, subject }: EnrollmentToken,
  authoritiesPem: string,
  clientCertificate: ClientCertificate,
): Promise<boolean> {
  const transport = createHttpTransport({ url, rootPem: authoritiesPem, clientCertificate })
  try {
    const { data } = await new Client(transport, { base: CLIENT_PATH }).call('POST', '/authenticate?method=cert', {})
    const { token, identity } = data as { token: string; identity: { id: string } }
    await new Client(transport, { base: CLIENT_PATH, token }).call('DELETE', '/current-api-session')
    return method === 'ca' || identity.id === subject
  } catch (error) {
    if (error instanceof RequestError) return false
    throw error
  } finally {
    await transport.close()
  }
}

/** Pins the root in a profile that is signed out, so that the first login does not ask for its fingerprint. */
function pinRoot(url: string, authoritiesPem: string, username: string | undefined): void {
  const root = rootFromPem(authoritiesPem)
  if (!root) return
  Profiles.open(process.env).add(toProfileName(url), {
    url,
    rootPem: root.pem,
    ...(username === undefined ? {} : { username }),
  })
}

const CERTIFICATE_CODES = [
  'CERT_FAILED_VALIDATION',
  'CERTIFICATE_FAILED_VALIDATION',
  'ENROLLMENT_CA_NOT_VALID',
  'ENROLLMENT_NO_VALID_CAS',
]

function explainFailure(error: unknown, token: EnrollmentToken): unknown {
  const { url } = token
  if (error instanceof UnreachableError && !error.isUntrusted && !error.isForeign) {
    const hint = 'check the network, then run the command again'
    return new CommandError(EXIT.tryLater, 'UNREACHABLE', error.message, { hint })
  }
  if (!(error instanceof RequestError)) return error
  const { code } = error
  if (REJECTED_TOKEN_CODES.includes(code)) return explainRejectedToken(token)
  if (code === 'CERT_IN_USE') {
    return new CommandError(EXIT.conflict, code, `${url}: the certificate belongs to another identity`)
  }
  if (CERTIFICATE_CODES.includes(code)) {
    const message = `${url}: certificates of this authority cannot be enrolled`
    const hint = 'an administrator checks the authority: controller ca list'
    return new CommandError(EXIT.usage, code, message, { hint })
  }
  return error
}
