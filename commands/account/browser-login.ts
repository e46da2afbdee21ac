// Signs in with a browser at the pages of the controller: the session is named by an access token, which renews itself.
import type { Transport } from '../../src/client/transport.ts'
import { Client, EITHER_PATH } from '../client/client.ts'
import { toBearerHeaders } from '../client/external-jwt.ts'
import { listenForRedirect } from '../client/loopback.ts'
import { authorizeByBrowser, discoverIssuer } from '../client/oauth.ts'
import type { Profile } from '../client/profiles.ts'
import type { ApiSession } from '../client/sign-in.ts'
import { CommandError, EXIT, makeUsageError } from '../foundation/exit-codes.ts'
import { RequestError } from '../foundation/request-error.ts'
import { openBrowser } from '../terminal/browser.ts'

const CLIENT_ID = 'native'
const SCOPES = ['openid', 'offline_access']

/** Writes the address of a sign-in, and opens it in the browser of this machine, if it has one. */
export function showSignIn(url: string, notice: (text: string) => void): void {
  notice(`Sign in with a browser, at this address:\n\n  ${url}\n`)
  void openBrowser(url)
}

export interface BrowserSession extends Pick<Profile, 'accessToken' | 'grant'> {
  readonly session: ApiSession
}

/** @throws CommandError if the controller does not serve sign-in by OpenID Connect, or refuses it */
export async function signInByBrowser(transport: Transport, notice: (text: string) => void): Promise<BrowserSession> {
  const endpoints = await discoverController(transport)
  const listener = await listenForRedirect('127.0.0.1', 0)
  try {
    const request = { clientId: CLIENT_ID, scopes: SCOPES }
    const tokens = await authorizeByBrowser(transport, endpoints, request, listener, (url) => showSignIn(url, notice))
    const { accessToken, refreshToken, expiresAt = Date.now() } = tokens
    if (accessToken === undefined || refreshToken === undefined) {
      throw new CommandError(EXIT.failed, 'FAILED', `${transport.target} issued no tokens`)
    }
    await requireUnbound(accessToken)
    const client = new Client(transport, { base: EITHER_PATH })
    const { data } = await client.call('GET', '/current-api-session', undefined, toBearerHeaders(accessToken))
    return {
      session: data as ApiSession,
      accessToken: { token: accessToken, expiresAt },
      grant: { tokenEndpoint: endpoints.token, clientId: CLIENT_ID, refreshToken },
    }
  } finally {
    listener.close()
  }
}

/** @throws CommandError if the token is bound to the certificate of the browser, whose key this program does not have */
async function requireUnbound(accessToken: string): Promise<void> {
  const { decodeJwt } = await import('jose')
  const { z_cfs: fingerprints } = decodeJwt<{ z_cfs?: readonly string[] | null }>(accessToken)
  if (!fingerprints?.length) return
  const message = 'the browser signed in by a certificate, whose tokens are good only for the browser'
  throw makeUsageError(message, {
    hint: 'controller login --identity FILE, with the identity file, or sign in with the browser in another way',
  })
}

async function discoverController(transport: Transport) {
  try {
    return await discoverIssuer(transport, `${transport.target}/oidc`)
  } catch (error) {
    if (!(error instanceof CommandError || error instanceof RequestError)) throw error
    const message = `${transport.target} does not serve sign-in by OpenID Connect at this address`
    throw new CommandError(EXIT.failed, 'NO_ISSUER', message, {
      hint: 'use an address of the controller whose listener carries oidc, and that its server certificate names',
    })
  }
}
