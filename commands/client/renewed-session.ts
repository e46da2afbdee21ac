// Signs in by identity files: again if the session of a profile has ended, and for one command by that of the environment.
import { createHttpTransport, UnreachableError } from '../../src/client/http-transport.ts'
import { collectReply, type Reply, type Request, type Stream, type Transport } from '../../src/client/transport.ts'
import { CommandError, EXIT } from '../foundation/exit-codes.ts'
import { RequestError } from '../foundation/request-error.ts'
import { toCommandLine } from '../foundation/shell-words.ts'
import { readExternalJwt, toBearerHeaders } from './external-jwt.ts'
import { readIdentityFile } from './identity-files.ts'
import { explainFailedSignIn } from './login-failures.ts'
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

/** A transport whose requests are of a session of its own, which ends when it closes, if the environment names an identity file. */
export function withOwnSession(named: Transport, profile: Profile): Transport {
  const { identityFile } = profile
  const nameRoot = (plain: Transport) => withNamedRoot(plain, process.env)
  const transport = nameRoot(named)
  if (identityFile === undefined) return transport
  let token: Promise<string> | undefined
  const stream = async (request: Request): Promise<Stream> => {
    token ??= signInByFile(profile, identityFile, ['--identity', identityFile], nameRoot)
    return transport.stream({ ...request, headers: { ...request.headers, 'net-session': await token } })
  }
  return {
    ...transport,
    stream,
    send: async (request) => collectReply(await stream(request)),
    async close() {
      const openedToken = await token?.catch(() => undefined)
      if (openedToken !== undefined) await new PartialSession(transport, { token: openedToken }).end()
      await transport.close()
    },
  }
}

/** Signs in, and stores the new session in the profile. @throws CommandError if a second factor is required, or the certificate is refused */
async function renewSession(name: string, profile: Profile, identityFile: string): Promise<string> {
  const token = await signInByFile(profile, identityFile, ['--profile', name])
  Profiles.open(process.env).renewSession(name, profile, token)
  return token
}

/** @param login the arguments of a login, which presents second factors */
async function signInByFile(
  profile: Profile,
  identityFile: string,
  login: readonly string[],
  wrap = (plain: Transport) => plain,
): Promise<string> {
  const { url, rootPem } = profile
  const { clientCertificate } = readIdentityFile(identityFile)
  const secondFile = findSecondFactorFile(profile)
  const jwt = secondFile === undefined ? undefined : await readExternalJwt(secondFile)
  const transport = wrap(createHttpTransport({ url, rootPem, clientCertificate, headers: toBearerHeaders(jwt) }))
  try {
    const session = await requestApiSession(transport, { method: 'cert', identityFile, clientCertificate })
    if ((session.authQueries ?? []).length === 0) return session.token
    await new PartialSession(transport, session).end()
    const message = `${url}: a new session of ${identityFile} requires a second factor`
    throw new CommandError(EXIT.signInFirst, 'SECOND_FACTOR_REQUIRED', message, { hint: toCommandLine('login', login) })
  } catch (error) {
    throw await explainFailedSignIn(error, { method: 'cert', identityFile, clientCertificate }, url)
  } finally {
    await transport.close()
  }
}

/** The transport to a controller that the variables name; if the root is not that of the controller, the error names the variable. */
function withNamedRoot(transport: Transport, env: NodeJS.ProcessEnv): Transport {
  if (!env.CONTROLLER_ROOT_FILE) return transport
  const explain = (error: unknown): never => {
    if (!(error instanceof UnreachableError && error.isUntrusted)) throw error
    throw new CommandError(EXIT.failed, 'UNTRUSTED', `${error.message} in CONTROLLER_ROOT_FILE`, {
      hint: 'set CONTROLLER_ROOT_FILE to the root certificate of that controller: pki/root.crt in its data directory',
    })
  }
  return {
    ...transport,
    stream: (request) => transport.stream(request).catch(explain),
    send: (request) => transport.send(request).catch(explain),
  }
}
