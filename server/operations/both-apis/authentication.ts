// Sign-in by any method. The session lists the second factors that are outstanding afterwards.

import type { ClientInfo } from '../../../src/authentication/api-sessions/create-api-session.ts'
import type { Method } from '../../../src/authentication/sign-in/authentication-methods.ts'
import { methods } from '../../../src/authentication/sign-in/authentication-methods.ts'
import { signIn } from '../../../src/authentication/sign-in/flow.ts'
import { passwordLength, usernameLength } from '../../../src/definitions/resources/authenticators.ts'
import { envInfoSchema, sdkInfoSchema } from '../../../src/definitions/resources/identities.ts'
import { f } from '../../../src/definitions/schema/fields.ts'
import type { JsonSchema } from '../../../src/definitions/schema/json-schema.ts'
import { detectSignInDialect, makeExtensionHeaders, makeSessionHeaders, SESSION_HEADERS } from '../../api/dialects.ts'
import { type AnyOperation, defineOperation, readFieldsBody } from '../../api/operation.ts'
import { dataResponse, type Response } from '../../api/responses.ts'
import { renderNewApiSession } from './current-api-session.ts'

const sessionToken = { type: 'string', format: 'uuid', description: 'The token of the new session.' }
const sessionHeaderSchemas = Object.fromEntries(Object.values(SESSION_HEADERS).map((name) => [name, sessionToken]))

interface AuthenticateBody extends ClientInfo {
  readonly username?: string
  readonly password?: string
}

/** Drops undeclared members, which would otherwise be stored with the identity, up to the size of a body. */
function pickDeclared<V extends object>({ properties = {} }: JsonSchema, info: V): V {
  return Object.fromEntries(Object.entries(info).filter(([name]) => Object.hasOwn(properties, name))) as V
}

/** The report of a client about itself when it signs in. */
export const clientInfoFields = {
  configTypes: f.strings({
    summary: 'Ids or names of the config types whose data services include; "all" means every type.',
  }),
  envInfo: f.json(envInfoSchema, {
    summary: 'The machine that the client runs on.',
    normalize: (info) => pickDeclared(envInfoSchema, info),
  }),
  sdkInfo: f.json(sdkInfoSchema, {
    summary: 'The client itself.',
    normalize: (info) => pickDeclared(sdkInfoSchema, info),
  }),
}

const authenticateFields = {
  username: f.text(usernameLength),
  password: f.text({ ...passwordLength, secret: true }),
  ...clientInfoFields,
}

export const authenticationOperations: readonly AnyOperation[] = [
  defineOperation<AuthenticateBody>({
    id: 'authenticate',
    apis: ['client', 'management'],
    topic: 'authentication',
    method: 'POST',
    path: '/authenticate',
    summary: 'Signs in by password, client certificate or external token.',
    access: { public: 'it is how a caller becomes known' },
    query: { method: { schema: { type: 'string', enum: methods }, isRequired: true } },
    body: readFieldsBody<AuthenticateBody>(authenticateFields, { isRequired: false }),
    returns: { kind: 'record', resource: 'api-sessions', always: ['expirationSeconds', 'expiresAt'] },
    responseHeaders: sessionHeaderSchemas,
    async run({ controller, context, query, body, peer, bearerTokens, headers, dialect }): Promise<Response> {
      const { username, password, ...reported } = body
      const presented = {
        peer,
        bearerTokens,
        ...(username ? { username } : {}),
        ...(password ? { password } : {}),
      }
      const { apiSession, isExtendRequested, externalTokens } = await signIn(
        controller,
        context,
        query.method as Method,
        presented,
        reported,
      )
      // Routers must know the session before its client connects to one.
      await controller.routers.sessionSync.settle()
      const sessionDialect = detectSignInDialect(headers, reported.sdkInfo, dialect)
      const token = controller.auth.apiSessions.deriveToken(apiSession.id)
      return dataResponse(await renderNewApiSession(controller, context, apiSession, sessionDialect, externalTokens), {
        headers: { ...makeSessionHeaders(token), ...makeExtensionHeaders(sessionDialect, isExtendRequested) },
      })
    },
  }),
]
