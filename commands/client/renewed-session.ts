// Renews the session of a profile if it has ended, and signs in for one command by the identity file of the environment.
import { createHttpTransport, UnreachableError } from '../../src/client/http-transport.ts'
import { collectReply, type Reply, type Request, type Stream, type Transport } from '../../src/client/transport.ts'
import { toCommandLine } from '../foundation/command-lines.ts'
import { CommandError, EXIT } from '../foundation/exit-codes.ts'
import { RequestError } from '../foundation/request-error.ts'
import { readExternalJwt, toBearerHeaders } from './external-jwt.ts'
import { readIdentityFile } from './identity-files.ts'
import { explainFailedSignIn } from './login-failures.ts'
import { findSecondFactorFile, type Profile, Profiles } from './profiles.ts'
import { PartialSession, type PrimaryFactor, requestApiSession } from './sign-in.ts'

type Headers = Readonly<Record<string, string>>

/** How the requests of a profile name its session. */
interface SessionHeaders {
  /** The headers for a request before the session is renewed; the request's own ones if undefined. */
  current?(): Promise<Headers>
  /** Renews the session, and returns the headers of the new one. */
  renew(): Promise<Headers>
}

/** A transport that repeats a request once its session was renewed, if the session is unknown and the profile can renew it. */
export async function withRenewedSession(transport: Transport, name: string, profile: Profile): Promise<Transport> {
  const { accessToken, grant, identityFile, signer } = profile
  if (accessToken && grant) {
    const { AccessTokens } = await import('./access-tokens.ts')
    const tokens = new AccessTokens(transport, name, profile)
    return withRenewal(transport, { current: () => tokens.getHeaders(), renew: () => tokens.renew() })
  }
  if (identityFile !== undefined)
    return withRenewal(transport, { renew: () => renewByFile(name, profile, identityFile) })
  if (signer && grant) {
    const { renewAtIssuer } = await import('./signer-sign-in.ts')
    return withRenewal(transport, {
      renew: () =>
        renewAtIssuer(name, profile, grant, async (jwt) =>
          signInOnce(profile, { method: 'ext-jwt', jwt }, ['--profile', name]),
        ),
    })
  }
  return transport
}

/** A transport to the controller of a profile that renews its access token. A session of another kind stays as it is. */
export async function openSession(name: string | undefined, profile: Profile): Promise<Transport> {
  const transport = createHttpTransport({ url: profile.url, rootPem: profile.rootPem })
  return name !== undefined && profile.accessToken ? withRenewedSession(transport, name, profile) : transport
}

/** Renews the session at most once for each request, so that a command that runs for long outlives any number of sessions. */
function withRenewal(transport: Transport, { current, renew }: SessionHeaders): Transport {
  // The newest renewal, for which requests at the same time wait together.
  let renewed: Promise<Headers> | undefined
  const stream = async (request: Request): Promise<Stream> => {
    if (!current && request.headers?.['net-session'] === undefined) return transport.stream(request)
    const sendWith = (headers: Headers) => transport.stream({ ...request, headers: { ...request.headers, ...headers } })
    const previous = renewed
    const response = await sendWith((await (current?.() ?? previous)) ?? {})
    if (response.status !== 401) return response
    const reply = await collectReply(response)
    if (!hasSessionEnded(transport.target, reply, current !== undefined))
      return { ...reply, body: streamText(reply.text) }
    const renewal = renewed === previous ? renew() : renewed
    renewed = renewal
    renewal?.catch(() => {
      if (renewed === renewal) renewed = previous
    })
    return sendWith((await renewal) ?? {})
  }
  return { ...transport, stream, send: async (request) => collectReply(await stream(request)) }
}

async function* streamText(text: string): AsyncIterable<Buffer> {
  yield Buffer.from(text)
}

/** @param isBearer whether the request named its session by an access token; one that is not accepted counts as none */
function hasSessionEnded(target: string, reply: Reply, isBearer: boolean): boolean {
  const { causeCode } = new RequestError(target, reply)
  return causeCode === 'SESSION_UNKNOWN' || (isBearer && causeCode === 'SESSION_MISSING')
}

/** A transport whose requests are of a session of its own, which ends when it closes, if the environment names an identity file. */
export function withOwnSession(named: Transport, profile: Profile): Transport {
  const { identityFile } = profile
  const nameRoot = (plain: Transport) => withNamedRoot(plain, process.env)
  const transport = nameRoot(named)
  if (identityFile === undefined) return transport
  let token: Promise<string> | undefined
  const stream = async (request: Request): Promise<Stream> => {
    token ??= signInOnce(profile, readCertificateFactor(identityFile), ['--identity', identityFile], nameRoot)
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
async function renewByFile(name: string, profile: Profile, identityFile: string): Promise<Headers> {
  const token = await signInOnce(profile, readCertificateFactor(identityFile), ['--profile', name])
  Profiles.open(process.env).renewSession(name, profile, { token, signedInAt: new Date().toISOString() })
  return { 'net-session': token }
}

/** The certificate of an identity file, to sign in by. */
export function readCertificateFactor(identityFile: string): PrimaryFactor {
  return { method: 'cert', identityFile, clientCertificate: readIdentityFile(identityFile).clientCertificate }
}

/** @param login the arguments of a login, which presents second factors */
async function signInOnce(
  profile: Profile,
  factor: PrimaryFactor,
  login: readonly string[],
  wrap = (plain: Transport) => plain,
): Promise<string> {
  const { url, rootPem } = profile
  const clientCertificate = factor.method === 'cert' ? { clientCertificate: factor.clientCertificate } : {}
  const secondFile = findSecondFactorFile(profile)
  const secondJwt = secondFile === undefined ? undefined : await readExternalJwt(secondFile)
  const headers = toBearerHeaders(factor.method === 'ext-jwt' ? factor.jwt : secondJwt)
  const transport = wrap(createHttpTransport({ url, rootPem, ...clientCertificate, headers }))
  try {
    const session = await requestApiSession(transport, factor)
    if ((session.authQueries ?? []).length === 0) return session.token
    await new PartialSession(transport, session).end()
    const subject = factor.method === 'cert' ? ` of ${factor.identityFile}` : ''
    const message = `${url}: a new session${subject} requires a second factor`
    throw new CommandError(EXIT.signInFirst, 'SECOND_FACTOR_REQUIRED', message, { hint: toCommandLine('login', login) })
  } catch (error) {
    throw await explainFailedSignIn(error, factor, url)
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
