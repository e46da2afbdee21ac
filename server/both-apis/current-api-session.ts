// Signing in, and what a caller may do with its own session.
import { authenticate, type Method, type Reported } from '../../src/auth/authenticate.ts'
import type { Context } from '../../src/context.ts'
import { errors } from '../../src/errors.ts'
import type { RawJson } from '../../src/records/raw-json.ts'
import { apiSessions } from '../../src/resources/api-sessions.ts'
import { envInfoSchema, sdkInfoSchema } from '../../src/resources/identities.ts'
import { f } from '../../src/schema/fields.ts'
import { removeIn } from '../../src/store/entities.ts'
import type { OwnSessionView } from '../../src/views/session-views.ts'
import { type Answer, data, empty } from '../answers.ts'
import { sessionHeaders } from '../dialects.ts'
import { type AnyOperation, fieldsBody, operation } from '../operation.ts'
import { recordJson } from '../resource-operations.ts'

const BOTH = ['client', 'management'] as const
const OWN: OwnSessionView = { isOwn: true }

interface AuthenticateBody extends Reported {
  readonly username?: string
  readonly password?: string
}

const authenticateFields = {
  username: f.text({ minLength: 4, maxLength: 100 }),
  password: f.text({ minLength: 5, maxLength: 100, secret: true }),
  configTypes: f.strings({
    summary: 'Ids or names of config types whose data services shall carry; all of them by "all".',
  }),
  envInfo: f.json(envInfoSchema),
  sdkInfo: f.json(sdkInfoSchema),
}

/** The id of the caller's session. */
export function ownSessionId({ caller }: Pick<Context, 'caller'>): string {
  if (caller.kind !== 'identity')
    throw errors.UNAUTHORIZED({ code: 'SESSION_MISSING', message: 'no session was named' })
  return caller.apiSessionId
}

function ownSession(context: Context, id: string): Promise<RawJson> {
  return recordJson(context, apiSessions, id, { view: OWN })
}

export const currentApiSessionOperations: readonly AnyOperation[] = [
  operation<AuthenticateBody>({
    id: 'authenticate',
    apis: BOTH,
    topic: 'authentication',
    method: 'POST',
    path: '/authenticate',
    summary: 'Signs in by password, client certificate or external token.',
    access: { public: 'it is how a caller becomes known' },
    query: { method: { schema: { type: 'string', enum: ['password', 'cert', 'ext-jwt'] }, isRequired: true } },
    body: fieldsBody<AuthenticateBody>(authenticateFields, { isRequired: false }),
    returns: { kind: 'record', resource: 'api-sessions' },
    async run({ context, query, body, certificates }): Promise<Answer> {
      const { username, password, ...reported } = body
      const credentials = { certificates, ...(username ? { username } : {}), ...(password ? { password } : {}) }
      const id = await authenticate(context, query.method as Method, credentials, reported)
      const session = await ownSession(context, id)
      return data(session, { headers: sessionHeaders(context.controller.sessions.tokenOf(id)) })
    },
  }),
  operation({
    id: 'getCurrentApiSession',
    apis: BOTH,
    topic: 'current-api-session',
    method: 'GET',
    path: '/current-api-session',
    summary: "Shows the caller's own session.",
    access: { permission: 'current-api-session.read', grantedTo: 'partial' },
    returns: { kind: 'record', resource: 'api-sessions' },
    run: async ({ context }) => data(await ownSession(context, ownSessionId(context))),
  }),
  operation({
    id: 'deleteCurrentApiSession',
    apis: BOTH,
    topic: 'current-api-session',
    method: 'DELETE',
    path: '/current-api-session',
    summary: "Signs out: ends the caller's own session.",
    access: { permission: 'current-api-session.delete', grantedTo: 'partial' },
    returns: { kind: 'empty' },
    async run({ context }) {
      const id = ownSessionId(context)
      await context.write((tx) => removeIn(tx, apiSessions, id, 'event'))
      return empty()
    },
  }),
]
