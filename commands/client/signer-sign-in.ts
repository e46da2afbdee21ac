// Signs in at the issuer of an external JWT signer, whose address, client id and scopes the controller names to everyone.
import { readFileSync } from 'node:fs'
import * as tls from 'node:tls'
import { createHttpTransport } from '../../src/client/http-transport.ts'
import type { Transport } from '../../src/client/transport.ts'
import { toCommandLine } from '../foundation/command-lines.ts'
import { CommandError, EXIT, makeUsageError } from '../foundation/exit-codes.ts'
import { CLIENT_PATH, Client } from './client.ts'
import { listenForRedirect } from './loopback.ts'
import {
  type AuthorizationRequest,
  authorizeByBrowser,
  discoverIssuer,
  GrantEndedError,
  type IssuedTokens,
  refreshTokens,
} from './oauth.ts'
import { type Profile, Profiles, type SignerMethod, type StoredGrant } from './profiles.ts'

// OpenZiti's clients wait for the browser at the same port, so that one registration at the issuer is enough.
const DEFAULT_CALLBACK_PORT = 20314

/** A signer as clients see it before they sign in. */
interface Signer {
  readonly name: string
  readonly externalAuthUrl?: string | null
  readonly clientId?: string | null
  readonly scopes?: readonly string[] | null
  readonly audience?: string | null
  readonly targetToken?: 'ACCESS' | 'ID'
}

/** A JWT of an issuer, and by which the next one is obtained, if the issuer allows it. */
export interface SignerResult {
  readonly jwt: string
  readonly grant: StoredGrant | undefined
}

/**
 * Has the user sign in with a browser at the issuer of a signer.
 * @param controller a transport to the controller
 * @param show writes the URL for the user
 */
export async function signInAtIssuer(
  controller: Transport,
  method: SignerMethod,
  show: (url: string) => void,
): Promise<SignerResult> {
  const signer = await findSigner(controller, method.name)
  const { externalAuthUrl, clientId, targetToken = 'ACCESS' } = signer
  if (!externalAuthUrl || !clientId) throw incompleteError(signer)
  const transport = createIssuerTransport(externalAuthUrl, method)
  const listener = await listenForRedirect('localhost', method.callbackPort ?? DEFAULT_CALLBACK_PORT)
  try {
    const endpoints = await discoverIssuer(transport, externalAuthUrl)
    const request = toAuthorizationRequest(signer, clientId)
    const tokens = await authorizeByBrowser(transport, endpoints, request, listener, show)
    const { refreshToken } = tokens
    const grant = refreshToken && { tokenEndpoint: endpoints.token, clientId, refreshToken, target: targetToken }
    return { jwt: pickToken(tokens, targetToken, externalAuthUrl), grant: grant || undefined }
  } finally {
    listener.close()
    await transport.close()
  }
}

/**
 * Obtains the next JWT by the grant of a profile, signs in with it, and stores the new session.
 * Returns the headers of the session. @throws CommandError with exit code 4 if the issuer does not issue one any more
 */
export async function renewAtIssuer(
  name: string,
  profile: Profile,
  grant: StoredGrant,
  signIn: (jwt: string) => Promise<string>,
): Promise<Readonly<Record<string, string>>> {
  const { tokenEndpoint, target = 'ACCESS', refreshToken } = grant
  const transport = createIssuerTransport(tokenEndpoint, profile.signer)
  try {
    const tokens = await refreshTokens(transport, tokenEndpoint, grant)
    const nextGrant = { ...grant, refreshToken: tokens.refreshToken ?? refreshToken }
    // Stored first, because the issuer may not accept the previous one again.
    Profiles.open(process.env).renewSession(name, profile, { grant: nextGrant })
    const token = await signIn(pickToken(tokens, target, tokenEndpoint))
    const next = { token, signedInAt: new Date().toISOString() }
    Profiles.open(process.env).renewSession(name, { ...profile, grant: nextGrant }, next)
    return { 'net-session': token }
  } catch (error) {
    if (!(error instanceof GrantEndedError)) throw error
    const hint = toCommandLine('login', ['--profile', name])
    throw new CommandError(EXIT.signInFirst, 'UNAUTHORIZED', `${profile.url}: your session has ended`, { hint })
  } finally {
    await transport.close()
  }
}

async function findSigner(controller: Transport, name: string): Promise<Signer> {
  const client = new Client(controller, { base: CLIENT_PATH })
  const { data } = await client.call('GET', '/external-jwt-signers?limit=-1')
  const signers = data as readonly Signer[]
  const signer = signers.find((each) => each.name === name)
  if (signer) return signer
  const names = signers.map((each) => each.name).join(', ')
  throw new CommandError(EXIT.notFound, 'NOT_FOUND', `${controller.target}: there is no enabled signer ${name}`, {
    hint: names === '' ? 'ask an administrator: no signer is enabled' : names,
  })
}

function incompleteError({ name }: Signer): CommandError {
  return makeUsageError(`the signer ${name} does not say where and as which client its users sign in`, {
    hint: `an administrator: ${toCommandLine('external-jwt-signer', ['update', name, '--external-auth-url', 'URL', '--client-id', 'ID'])}`,
  })
}

function toAuthorizationRequest({ scopes, audience, targetToken }: Signer, clientId: string): AuthorizationRequest {
  const allScopes = [...new Set(['openid', ...(scopes ?? [])])]
  return {
    clientId,
    scopes: allScopes,
    // OpenID Connect Core, section 11: a refresh token requires that the user consents.
    prompt: allScopes.includes('offline_access') ? 'consent' : undefined,
    audience: targetToken === 'ID' ? undefined : (audience ?? undefined),
  }
}

function pickToken({ idToken, accessToken }: IssuedTokens, target: 'ACCESS' | 'ID', issuer: string): string {
  const token = target === 'ID' ? idToken : accessToken
  if (token !== undefined) return token
  const kind = target === 'ID' ? 'ID token' : 'access token'
  throw new CommandError(EXIT.signInFirst, 'INVALID_AUTH', `${issuer} issued no ${kind}`)
}

/** A transport that trusts the authorities of this machine's Node.js, and those of the file. */
function createIssuerTransport(url: string, method: SignerMethod | undefined): Transport {
  if (!url.startsWith('https://')) throw makeUsageError(`the issuer ${url} is not protected by TLS`)
  const rootPem = [...listPublicAuthorities(), ...readAuthorities(method?.caFile)].join('\n')
  return createHttpTransport({ url: new URL(url).origin, rootPem })
}

/** Node.js 20 has no function for them that includes those of NODE_EXTRA_CA_CERTS. */
function listPublicAuthorities(): readonly string[] {
  const { getCACertificates } = tls as { getCACertificates?: (type: 'default') => string[] }
  return getCACertificates?.('default') ?? tls.rootCertificates
}

function readAuthorities(file: string | undefined): string[] {
  if (file === undefined) return []
  const text = readFileSync(file, 'utf8')
  if (text.includes('-----BEGIN CERTIFICATE-----')) return [text]
  throw makeUsageError(`${file} does not contain a certificate`, { field: 'issuer-ca-file' })
}
