// Clients that signed in by OpenID Connect: by a password, so that their tokens are bound to no certificate.
import { createHash, randomBytes } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { forEach, MANAGEMENT } from '../controller/api.ts'
import type { Target } from '../generator/connection.ts'
import type { Network } from './network.ts'

// Each sign-in compares a password.
const CLIENTS = 24
const PASSWORD = 'correct horse battery'
const REDIRECT_URI = 'http://localhost:8080/auth/callback'

/** The headers of the requests of each client. */
export function openIdSessions(network: Network): Promise<readonly Readonly<Record<string, string>>[]> {
  return network.once('clients by OpenID Connect', () => signInAll(network))
}

function signInAll({ api }: Network): Promise<Readonly<Record<string, string>>[]> {
  return forEach(
    Array.from({ length: CLIENTS }, (_, at) => `person-${at}`),
    async (username) => {
      const identity = { name: username, type: 'Device', isAdmin: false }
      const path = `${MANAGEMENT}/identities`
      const { id: identityId } = (await api.asAdministrator({ method: 'POST', path, body: identity })) as { id: string }
      const body = { identityId, method: 'updb', username, password: PASSWORD }
      await api.asAdministrator({ method: 'POST', path: `${MANAGEMENT}/authenticators`, body })
      return { Authorization: `Bearer ${await signIn(api.target, username)}` }
    },
  )
}

async function signIn(target: Target, username: string): Promise<string> {
  const verifier = randomBytes(32).toString('base64url')
  const begun = await send(target, '/oidc/authorize', {
    ...{ client_id: 'native', response_type: 'code', scope: 'openid', redirect_uri: REDIRECT_URI },
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
  })
  const id = readParameter(begun, 'authRequestID')
  await send(target, '/oidc/login/password', { id, username, password: PASSWORD, sdkType: 'ziti-sdk-golang' })
  const back = await send(target, `/oidc/authorize/callback?id=${id}`)
  const { text } = await send(target, '/oidc/oauth/token', {
    ...{ grant_type: 'authorization_code', client_id: 'native', redirect_uri: REDIRECT_URI },
    code: readParameter(back, 'code'),
    code_verifier: verifier,
  })
  return (JSON.parse(text) as { access_token: string }).access_token
}

interface Reply {
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

function readParameter({ headers }: Reply, name: string): string {
  return new URL(headers.location ?? '', 'https://localhost').searchParams.get(name) ?? ''
}

/** Sends a form, or without one reads a path. */
function send({ host, port }: Target, path: string, form?: Readonly<Record<string, string>>): Promise<Reply> {
  const headers = form ? { 'Content-Type': 'application/x-www-form-urlencoded' } : {}
  const options = { host, port, path, method: form ? 'POST' : 'GET', headers, rejectUnauthorized: false, agent: false }
  return new Promise((resolve, reject) => {
    const request = httpsRequest(options, (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (piece: string) => {
        text += piece
      })
      response.on('end', () => {
        if ((response.statusCode ?? 0) < 400) resolve({ headers: response.headers, text })
        else reject(new Error(`${path} failed with ${response.statusCode}: ${text}`))
      })
    })
    request.on('error', reject)
    request.end(form ? new URLSearchParams(form).toString() : undefined)
  })
}
