// A general client library signs in, and checks all that its standards ask for: discovery, PKCE, ID tokens, userinfo, refresh.
import {
  allowInsecureRequests,
  authorizationCodeGrant,
  buildAuthorizationUrl,
  buildEndSessionUrl,
  type CustomFetchOptions,
  calculatePKCECodeChallenge,
  customFetch,
  discovery,
  fetchUserInfo,
  None,
  randomNonce,
  randomPKCECodeVerifier,
  randomState,
  refreshTokenGrant,
  tokenRevocation,
} from 'openid-client'
import { expect, it } from 'vitest'
import { People } from '../world/people.ts'
import { useController } from '../world/use-controller.ts'
import { HOST, ISSUER, OIDC_SETTINGS, OpenIdClient, REDIRECT } from './client.ts'

const world = useController({ settings: OIDC_SETTINGS })

/** Sends the requests of the library to the controller. */
async function send(url: string, { method, headers, body }: CustomFetchOptions): Promise<Response> {
  const { pathname, search } = new URL(url)
  const response = await world.send({
    method,
    path: pathname + search,
    headers: { ...headers, host: HOST },
    ...(body === undefined || body === null ? {} : { body: String(body) }),
  })
  const sentHeaders = Object.entries(response.headers).filter(
    (entry): entry is [string, string] => typeof entry[1] === 'string',
  )
  return new Response(response.text === '' ? null : response.text, { status: response.status, headers: sentHeaders })
}

const configure = () =>
  discovery(new URL(ISSUER), 'native', undefined, None(), { [customFetch]: send, execute: [allowInsecureRequests] })

it('a general library signs in by a code, and its checks pass', async () => {
  const people = await People.in(world)
  const person = await people.person()
  const config = await configure()
  const [verifier, state, nonce] = [randomPKCECodeVerifier(), randomState(), randomNonce()]
  const url = buildAuthorizationUrl(config, {
    redirect_uri: REDIRECT,
    scope: 'openid offline_access',
    code_challenge: await calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
    ...{ state, nonce },
  })
  const browser = new OpenIdClient(world)
  const page = await browser.get(url.pathname + url.search)
  const id = new URL(String(page.headers.location), ISSUER).searchParams.get('authRequestID') ?? ''
  await browser.login(id, person)
  const back = await browser.get(`/oidc/authorize/callback?id=${id}`)

  const checks = { pkceCodeVerifier: verifier, expectedState: state, expectedNonce: nonce, idTokenExpected: true }
  const tokens = await authorizationCodeGrant(config, new URL(String(back.headers.location)), checks)

  expect(tokens.claims()?.sub).toBe(person.id)
  expect(tokens.token_type).toBe('bearer')
  expect((await fetchUserInfo(config, tokens.access_token, person.id)).sub).toBe(person.id)
  const next = await refreshTokenGrant(config, tokens.refresh_token ?? '')
  expect(next.claims()?.sub).toBe(person.id)
  expect(buildEndSessionUrl(config, { id_token_hint: next.id_token ?? '' }).href).toMatch(`${ISSUER}/end_session?`)
  await tokenRevocation(config, next.refresh_token ?? '')
  await expect(refreshTokenGrant(config, next.refresh_token ?? '')).rejects.toMatchObject({ error: 'invalid_grant' })
  await expect(fetchUserInfo(config, next.access_token, person.id)).rejects.toThrow()
})
