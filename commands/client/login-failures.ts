// Explains why a sign-in failed. The controller does not, because its response must not reveal which identities exist.
import { X509Certificate } from 'node:crypto'
import { existsSync } from 'node:fs'
import { UnreachableError } from '../../src/client/http-transport.ts'
import { toCommandLine } from '../foundation/command-lines.ts'
import { CommandError, EXIT } from '../foundation/exit-codes.ts'
import { RequestError } from '../foundation/request-error.ts'
import { toTimeText } from '../foundation/times.ts'
import { readExpiry } from './external-jwt.ts'
import { toPendingPath } from './identity-files.ts'
import type { PrimaryFactor } from './sign-in.ts'

/** The error with the reason that this machine can tell, and what the user can do. */
export async function explainFailedSignIn(error: unknown, factor: PrimaryFactor, url: string): Promise<unknown> {
  if (error instanceof UnreachableError) return explainUnreachable(error, factor)
  if (!(error instanceof RequestError && isRejection(error, factor))) return error
  switch (factor.method) {
    case 'password':
      return explainWrongPassword(url)
    case 'cert':
      return explainCertificate(factor, url)
    case 'ext-jwt':
      return explainToken(factor.jwt, url)
  }
}

/** A username or a password that breaks the rules of new ones is wrong like any other. */
function isRejection({ code, field }: RequestError, { method }: PrimaryFactor): boolean {
  if (code === 'INVALID_AUTH') return true
  return method === 'password' && code === 'COULD_NOT_VALIDATE' && (field === 'username' || field === 'password')
}

function explainWrongPassword(url: string): CommandError {
  return new CommandError(EXIT.signInFirst, 'INVALID_AUTH', `${url}: the username or the password is not accepted`, {
    hint: 'check the username and the password',
  })
}

/** The identity file names the address and the authorities of its controller, so the hints for profiles do not help. */
function explainUnreachable(error: UnreachableError, factor: PrimaryFactor): unknown {
  if (factor.method !== 'cert' || error.isForeign) return error
  if (!error.isUntrusted) {
    const hint = 'check the network, then run the command again'
    return new CommandError(EXIT.tryLater, 'UNREACHABLE', error.message, { hint })
  }
  const hint = 'if the controller was created again, enroll again; otherwise --ca-file with its root certificate'
  return new CommandError(EXIT.failed, 'UNTRUSTED', `${error.message} that ${factor.identityFile} names`, { hint })
}

function explainCertificate(
  { identityFile, clientCertificate }: Extract<PrimaryFactor, { method: 'cert' }>,
  url: string,
): CommandError {
  const expiresAt = new Date(new X509Certificate(clientCertificate.certificatePem).validTo).toISOString()
  const isExpired = Date.parse(expiresAt) <= Date.now()
  const message = isExpired
    ? `${url}: the certificate in ${identityFile} expired ${toTimeText(expiresAt)}`
    : `${url}: the certificate in ${identityFile} is not accepted`
  if (existsSync(toPendingPath(identityFile))) {
    const pendingMessage = `${url}: the renewal of the certificate in ${identityFile} was interrupted`
    const pendingHint = toCommandLine('renew', [identityFile])
    return new CommandError(EXIT.signInFirst, 'INVALID_AUTH', pendingMessage, { hint: pendingHint })
  }
  const hint = isExpired
    ? 'ask an administrator for a new enrollment token: controller authenticator re-enroll'
    : 'ask an administrator whether the identity is enabled, or for a new enrollment token'
  return new CommandError(EXIT.signInFirst, 'INVALID_AUTH', message, { hint })
}

async function explainToken(jwt: string, url: string): Promise<CommandError> {
  const expiresAt = await readExpiry(jwt)
  const isExpired = expiresAt !== undefined && Date.parse(expiresAt) <= Date.now()
  const message = isExpired
    ? `${url}: the JWT expired ${toTimeText(expiresAt)}, at ${expiresAt}`
    : `${url}: the JWT is not accepted`
  const hint = isExpired
    ? 'obtain a new one from its issuer'
    : 'an administrator finds out why: controller external-jwt-signer test SIGNER --token-file FILE'
  return new CommandError(EXIT.signInFirst, 'INVALID_AUTH', message, { hint })
}
