// The renewal of the certificate in an identity file, in steps after each of which one of two files signs in.
import { createPrivateKey } from 'node:crypto'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { type ClientCertificate, createHttpTransport, UnreachableError } from '../../src/client/http-transport.ts'
import type { Transport } from '../../src/client/transport.ts'
import { toKeyPem } from '../../src/pki/pem.ts'
import { encodeSigningRequest, generateClientKey, isCertificateOf } from '../../src/pki/request-encoding.ts'
import { Client, EITHER_PATH } from '../client/client.ts'
import { type IdentityFile, readIdentityFile, renderIdentityFile, toPendingPath } from '../client/identity-files.ts'
import { explainFailedSignIn } from '../client/login-failures.ts'
import { type FileTarget, findFileTarget, readTarget, replaceFile } from '../client/reserved-file.ts'
import { type ApiSession, PartialSession, requestApiSession } from '../client/sign-in.ts'
import { toCommandLine } from '../foundation/command-lines.ts'
import { CommandError, EXIT, makeUsageError } from '../foundation/exit-codes.ts'
import { delayInterrupt } from '../foundation/interrupts.ts'
import { RequestError } from '../foundation/request-error.ts'

/** An identity file whose certificate can be renewed, and its place. */
export interface RenewableFile extends IdentityFile {
  readonly target: FileTarget
  readonly rootPem: string
}

/** @throws CommandError with exit code 2 if it is not an identity file, or its certificate cannot be renewed in it */
export function openRenewableFile(path: string): RenewableFile {
  return readTarget(path, (descriptor, target) => toRenewableFile(path, readIdentityFile(path, descriptor), target))
}

function toRenewableFile(path: string, file: IdentityFile, target: FileTarget): RenewableFile {
  const { authoritiesPem } = file
  if (!file.isSelfContained) {
    throw makeUsageError(`${path} refers to the files of its certificate and key, which this program does not replace`)
  }
  if (authoritiesPem === undefined) throw makeUsageError(`${path}: id.ca is missing, which identifies the controller`)
  return { ...file, target, rootPem: authoritiesPem }
}

/**
 * Completes a renewal that was interrupted after the controller confirmed the new certificate. @returns the renewed file, if
 * there is one
 */
export async function completePendingRenewal(file: RenewableFile): Promise<IdentityFile | undefined> {
  const pendingPath = toPendingPath(file.target.path)
  if (!existsSync(pendingPath)) return undefined
  const pending = readIdentityFile(pendingPath)
  const { url, rootPem } = file
  const transport = createHttpTransport({ url, rootPem, clientCertificate: pending.clientCertificate })
  const factor = { method: 'cert', identityFile: pendingPath, clientCertificate: pending.clientCertificate } as const
  try {
    await new PartialSession(transport, await requestApiSession(transport, factor)).end()
  } catch (error) {
    // The file stays, because the identity may be disabled. A renewal that begins by the old certificate replaces it.
    if (error instanceof RequestError && error.code === 'INVALID_AUTH') return undefined
    throw await explainFailedSignIn(error, factor, url)
  } finally {
    await transport.close()
  }
  replaceFile(file.target, renderIdentityFile(pending))
  rmSync(pendingPath)
  return pending
}

/** @throws CommandError if the certificate cannot be renewed; the file is unchanged then */
export async function renewCertificate(
  transport: Transport,
  session: ApiSession,
  file: RenewableFile,
  keepKey: boolean,
): Promise<IdentityFile> {
  const client = new Client(transport, { base: EITHER_PATH, token: session.token })
  const path = `/current-identity/authenticators/${session.authenticatorId}`
  const key = keepKey ? createPrivateKey(file.clientCertificate.keyPem) : generateClientKey()
  const { clientCert, ca } = await sendExtensionRequest(
    client,
    path,
    encodeSigningRequest(session.identity.id, key),
    file,
  )
  if (!isCertificateOf(key, clientCert)) {
    const message = `${file.url}: the response does not contain a certificate for the key`
    throw new CommandError(EXIT.failed, 'UNEXPECTED_RESPONSE', message)
  }
  const clientCertificate: ClientCertificate = { certificatePem: clientCert, keyPem: toKeyPem(key) }
  const renewed: IdentityFile = { ...file, clientCertificate, authoritiesPem: ca }
  const warning = `the renewal is under way: press Ctrl-C again to give up, then run the command again to complete it`
  await delayInterrupt(warning, async () => {
    const text = renderIdentityFile(renewed)
    const pending = findFileTarget(toPendingPath(file.target.path))
    replaceFile({ ...pending, status: file.target.status }, text)
    await sendExtensionConfirmation(client, path, clientCert, file, text)
    replaceFile(file.target, text)
    removePending(file, text)
  })
  return renewed
}

async function sendExtensionRequest(
  client: Client,
  path: string,
  clientCertCsr: string,
  { target, url }: RenewableFile,
) {
  try {
    return (await client.call('POST', `${path}/extend`, { clientCertCsr })).data as { clientCert: string; ca: string }
  } catch (error) {
    if (!(error instanceof RequestError)) throw error
    if (error.causeCode === 'ADOPTION_ON_TRIAL') {
      const hint = 'run it again after that time; the certificate that you have stays valid'
      throw new CommandError(EXIT.tryLater, error.causeCode, `${url}: ${error.reason}`, { hint })
    }
    if (error.code === 'CAN_NOT_UPDATE_AUTHENTICATOR' || error.status === 404) {
      const message = `${url}: the certificate in ${target.path} was issued by another authority`
      throw new CommandError(EXIT.usage, error.code, message, { hint: 'renew it there' })
    }
    throw error.causeCode === 'CERTIFICATE_REQUIRED' ? overtakenError(target.path, url) : error
  }
}

/** Confirms that the new certificate was received. Only then it is valid, and the old one is not. */
async function sendExtensionConfirmation(
  client: Client,
  path: string,
  clientCert: string,
  file: RenewableFile,
  pendingText: string,
) {
  const { target, url } = file
  try {
    await client.call('POST', `${path}/extend-verify`, { clientCert })
  } catch (error) {
    if (error instanceof UnreachableError || (error instanceof RequestError && error.status >= 500)) {
      // The controller may have confirmed it.
      const message = `${error.message}: the renewal of ${target.path} is not complete`
      throw new CommandError(EXIT.tryLater, 'UNREACHABLE', message, { hint: toCommandLine('renew', [target.path]) })
    }
    removePending(file, pendingText)
    const isOvertaken = error instanceof RequestError && (error.status === 400 || error.status === 409)
    throw isOvertaken ? overtakenError(target.path, url) : error
  }
}

/** Removes the pending file, unless another process has replaced it. */
function removePending({ target }: RenewableFile, text: string): void {
  const path = toPendingPath(target.path)
  if (existsSync(path) && readFileSync(path, 'utf8') === text) rmSync(path)
}

function overtakenError(path: string, url: string): CommandError {
  const message = `${url}: another process renews the certificate in ${path} at the same time`
  return new CommandError(EXIT.conflict, 'CONFLICT', message, { hint: 'wait until it has finished' })
}
