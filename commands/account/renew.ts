// `controller renew`: exchanges the certificate in an identity file for a new one.
import { X509Certificate } from 'node:crypto'
import { Flags } from '@oclif/core'
import { createHttpTransport } from '../../src/client/http-transport.ts'
import type { Transport } from '../../src/client/transport.ts'
import { computeFingerprint } from '../../src/pki/certificates.ts'
import { readExternalJwt, toBearerHeaders } from '../client/external-jwt.ts'
import type { IdentityFile } from '../client/identity-files.ts'
import { explainFailedSignIn } from '../client/login-failures.ts'
import {
  mustEnrollError,
  presentSecondFactors,
  type SecondFactorFlags,
  secondFactorFlags,
} from '../client/second-factors.ts'
import { type ApiSession, PartialSession, requestApiSession } from '../client/sign-in.ts'
import { toCommandLine } from '../foundation/command-lines.ts'
import { parseInstant, toTimeText } from '../foundation/times.ts'
import { requiredArgument } from '../framework/arguments.ts'
import { PrintingCommand } from '../framework/base.ts'
import { completePendingRenewal, openRenewableFile, type RenewableFile, renewCertificate } from './renewal.ts'

interface RenewFlags extends SecondFactorFlags {
  readonly 'keep-key'?: boolean
  readonly within?: string | undefined
  readonly 'ext-jwt-file'?: string | undefined
  readonly output?: unknown
}

export class Renew extends PrintingCommand {
  static override summary = 'Renews the certificate in an identity file, with a new key.'
  static override description = [
    'The old certificate and key stay in the file until the controller has confirmed the new ones, which are in FILE.pending until',
    'then. If the command is interrupted, run it again: it completes the renewal.',
  ].join('\n')
  static override args = { file: requiredArgument({ description: 'The identity file.' }) }
  static override flags = {
    'keep-key': Flags.boolean({ description: 'Keep the key, and renew only the certificate.' }),
    within: Flags.string({
      description:
        'Renew only if the certificate expires within this time, or if the controller requests a new one; for scripts that run daily.',
      helpValue: 'DURATION',
    }),
    ...secondFactorFlags,
    'ext-jwt-file': Flags.string({
      description: 'File with a JWT of an external signer, if one is required as second factor.',
      helpValue: 'FILE',
    }),
  }
  static override examples = [
    '<%= config.bin %> <%= command.id %> laptop.json',
    '<%= config.bin %> <%= command.id %> laptop.json --within 30d',
  ]

  async run(): Promise<void> {
    const { args, flags } = await this.parse(Renew)
    const dueBefore = flags.within === undefined ? undefined : parseInstant('within', flags.within)
    const file = openRenewableFile(args.file)
    const completed = await completePendingRenewal(file)
    if (completed) return this.#printRenewed(file, completed, flags)
    const jwt = flags['ext-jwt-file'] === undefined ? undefined : await readExternalJwt(flags['ext-jwt-file'])
    const { url, rootPem, clientCertificate } = file
    const transport = createHttpTransport({ url, rootPem, clientCertificate, headers: toBearerHeaders(jwt) })
    try {
      const session = await signInWithFile(transport, file, flags, { jwt, dueBefore })
      if (!session) return await this.#printNotDue(file, flags)
      try {
        const renewed = await renewCertificate(transport, session, file, flags['keep-key'] === true)
        await this.#printRenewed(file, renewed, flags)
      } finally {
        await new PartialSession(transport, session).end()
      }
    } finally {
      await transport.close()
    }
  }

  #printRenewed(file: RenewableFile, renewed: IdentityFile, flags: RenewFlags): Promise<void> {
    const before = new X509Certificate(file.clientCertificate.certificatePem)
    const certificate = new X509Certificate(renewed.clientCertificate.certificatePem)
    const expiresAt = toExpiry(certificate)
    const facts = {
      identityFile: file.target.path,
      url: file.url,
      fingerprint: computeFingerprint(certificate),
      expiresAt,
      previousFingerprint: computeFingerprint(before),
      previousExpiresAt: toExpiry(before),
      hasNewKey: renewed.clientCertificate.keyPem !== file.clientCertificate.keyPem,
      isRenewed: true,
    }
    const sentence = `Renewed the certificate in ${file.target.path}. It expires ${toTimeText(expiresAt)}.`
    return this.print({ kind: 'done', sentence, facts }, flags.output)
  }

  #printNotDue({ target, url, clientCertificate }: RenewableFile, flags: RenewFlags): Promise<void> {
    const certificate = new X509Certificate(clientCertificate.certificatePem)
    const expiresAt = toExpiry(certificate)
    const facts = {
      identityFile: target.path,
      url,
      fingerprint: computeFingerprint(certificate),
      expiresAt,
      isRenewed: false,
    }
    const sentence = `The certificate in ${target.path} is not due. It expires ${toTimeText(expiresAt)}.`
    return this.print({ kind: 'done', sentence, facts }, flags.output)
  }
}

function toExpiry(certificate: X509Certificate): string {
  return new Date(certificate.validTo).toISOString()
}

function isRenewalDue({ clientCertificate }: RenewableFile, session: ApiSession, dueBefore: string): boolean {
  const { validTo } = new X509Certificate(clientCertificate.certificatePem)
  return session.isCertExtendRequested === true || Date.parse(validTo) <= Date.parse(dueBefore)
}

async function signInWithFile(
  transport: Transport,
  file: RenewableFile,
  flags: RenewFlags,
  { jwt, dueBefore }: { readonly jwt: string | undefined; readonly dueBefore: string | undefined },
): Promise<ApiSession | undefined> {
  const { path } = file.target
  const factor = { method: 'cert', identityFile: path, clientCertificate: file.clientCertificate } as const
  try {
    const partial = await requestApiSession(transport, factor)
    // No second factor is asked for if there is nothing to do.
    if (dueBefore !== undefined && !isRenewalDue(file, partial, dueBefore)) {
      await new PartialSession(transport, partial).end()
      return undefined
    }
    const result = await presentSecondFactors(transport, partial, flags, jwt)
    if (!result.mustEnrollMfa) return result.session
  } catch (error) {
    throw await explainFailedSignIn(error, factor, file.url)
  }
  throw mustEnrollError(file.url, `${toCommandLine('login', ['--identity', path])}, then controller mfa enroll`)
}
