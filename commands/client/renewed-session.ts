// Signs in again by the identity file of a profile, if its session has ended.
import { createHttpTransport } from '../../src/client/http-transport.ts'
import { collectReply, type Reply, type Request, type Stream, type Transport } from '../../src/client/transport.ts'
import { CommandError, EXIT } from '../exit-codes.ts'
import { explainFailedSignIn } from '../login-failures.ts'
import { toCommandLine } from '../shell-words.ts'
import { RequestError } from './client.ts'
import { readExternalJwt, toBearerHeaders } from './external-jwt.ts'
import { readIdentityFile } from './identity-files.ts'
import { findSecondFactorFile, type Profile, Profiles } from './profiles.ts'
import { PartialSession, requestApiSession } from './sign-in.ts'

/** A transport that signs in once and repeats a request if its session is unknown, if the profile signs in by an identity file. */
export function withRenewedSession(transport: Transport, name: string, profile: Profile): Transport {
  const { identityFile } = profile
  if (identityFile === undefined) return transport
  let token: Promise<string> | undefined
  const stream = async (request: Request): Promise<Stream> => {
    if (request.headers?.['net-session'] === undefined) return transport.stream(request)
    const sendWith = async (renewed: Promise<string>) =>
      transport.stream({ ...request, headers: { ...request.headers, 'net-session': await renewed } })
    if (token) return sendWith(token)
    const response = await transport.stream(request)
    if (response.status !== 401) return response
    const reply = await collectReply(response)
    if (!isSessionUnknown(transport.target, reply)) return { ...reply, body: streamText(reply.text) }
    token = renewSession(name, profile, identityFile)
    return sendWith(token)
  }
  return { ...transport, stream, send: async (request) => collectReply(await stream(request)) }
}

async function* streamText(text: string): AsyncIterable<Buffer> {
  yield Buffer.from(text)
}

function isSessionUnknown(target: string, reply: Reply): boolean {
  return new RequestError(target, reply).causeCode === 'SESSION_UNKNOWN'
}

/** Signs in, and stores the new session in the profile. @throws CommandError if a second factor is required, or the certificate is refused */
async function renewSession(name: string, profile: Profile, identityFile: string): Promise<string> {
  const { url, rootPem } = profile
  const { clientCertificate } = readIdentityFile(identityFile)
  const secondFile = findSecondFactorFile(profile)
  const jwt = secondFile === undefined ? undefined : await readExternalJwt(secondFile)
  const transport = createHttpTransport({ url, rootPem, clientCertificate, headers: toBearerHeaders(jwt) })
  try {
    const session = await requestApiSession(transport, { method: 'cert', identityFile, clientCertificate })
    if ((session.authQueries ?? []).length > 0) {
      await new PartialSession(transport, session).end()
      const message = `${url}: your session has ended, and a new one requires a second factor`
      throw new CommandError(EXIT.signInFirst, 'SESSION_ENDED', message, {
        hint: toCommandLine('login', ['--profile', name]),
      })
    }
    Profiles.open(process.env).renewSession(name, profile, session.token)
    return session.token
  } catch (error) {
    throw await explainFailedSignIn(error, { method: 'cert', identityFile, clientCertificate }, url)
  } finally {
    await transport.close()
  }
}
