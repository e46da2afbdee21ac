// A caller's own API session: reading it, and ending it.
import type { ApiSessionView } from '../../../src/authentication/api-sessions/api-session-behavior.ts'
import type { Controller } from '../../../src/controller/controller.ts'
import { apiSessions } from '../../../src/definitions/resources/api-sessions.ts'
import type { Entity } from '../../../src/definitions/resources/define.ts'
import { type Awaitable, whenReady } from '../../../src/foundation/awaitable.ts'
import { errors } from '../../../src/foundation/errors.ts'
import type { VerifiedToken } from '../../../src/storage/external-tokens.ts'
import { type Presentation, renderEntity } from '../../../src/storage/records/presentation.ts'
import type { RawJson } from '../../../src/storage/records/raw-json.ts'
import type { Context } from '../../../src/storage/transactions/context.ts'
import { JSON_FORMS, TOTP_QUERY_WORDS } from '../../api/dialects.ts'
import { type AnyOperation, type Call, defineOperation } from '../../api/operation.ts'
import { dataResponse, emptyResponse } from '../../api/responses.ts'
import { renderRecord } from '../../responses/record-responses.ts'

/** The id of the caller's session. */
export function requireApiSessionId({ caller }: Pick<Context, 'caller'>): string {
  if (caller.kind !== 'identity')
    throw errors.UNAUTHORIZED({ code: 'SESSION_MISSING', message: 'no session was named' })
  return caller.apiSessionId
}

/** The verified tokens of external signers that the request carries. */
export function getExternalTokens({ caller }: Pick<Context, 'caller'>): readonly VerifiedToken[] {
  return (caller.kind === 'identity' && caller.externalTokens) || []
}

/** An API session as its own caller sees it, in its dialect, with the verified tokens of the request. */
export function renderOwnApiSession(
  controller: Controller,
  context: Context,
  id: string,
  dialect: Call['dialect'],
  externalTokens: readonly VerifiedToken[] = [],
  accessToken?: string,
): Awaitable<RawJson> {
  return renderRecord(controller, context, apiSessions, id, presentOwn(dialect, externalTokens, accessToken))
}

/** The same from the values of a session that has just been stored. */
export function renderNewApiSession(
  { records }: Controller,
  context: Context,
  apiSession: Entity<typeof apiSessions>,
  dialect: Call['dialect'],
  externalTokens: readonly VerifiedToken[],
): Promise<RawJson> {
  return renderEntity(records, context, apiSessions, apiSession, presentOwn(dialect, externalTokens))
}

function presentOwn(
  dialect: Call['dialect'],
  externalTokens: readonly VerifiedToken[],
  accessToken?: string,
): Presentation {
  const view: ApiSessionView = { totpWords: TOTP_QUERY_WORDS[dialect], externalTokens, isOwn: true, accessToken }
  return { view, form: JSON_FORMS[dialect] }
}

const BOTH = ['client', 'management'] as const

export const currentApiSessionOperations: readonly AnyOperation[] = [
  defineOperation({
    id: 'getCurrentAPISession',
    apis: BOTH,
    topic: 'current-api-session',
    method: 'GET',
    path: '/current-api-session',
    summary: "Shows the caller's own session.",
    access: { permission: 'current-api-session.read', grantedTo: 'partial' },
    grantsNothing: 'to end the session later is what a delay of the news does anyway',
    returns: { kind: 'record', resource: 'api-sessions', always: ['expirationSeconds', 'expiresAt'] },
    run({ accessToken, controller, context, dialect }) {
      const id = requireApiSessionId(context)
      const externalTokens = getExternalTokens(context)
      const json = renderOwnApiSession(controller, context, id, dialect, externalTokens, accessToken?.token)
      return whenReady(json, (session) => dataResponse(session))
    },
  }),
  defineOperation({
    id: 'deleteCurrentApiSession',
    apis: BOTH,
    topic: 'current-api-session',
    method: 'DELETE',
    path: '/current-api-session',
    summary: "Signs out: ends the caller's own session.",
    access: { permission: 'current-api-session.delete', grantedTo: 'partial' },
    returns: { kind: 'empty' },
    async run({ controller, context }) {
      const id = requireApiSessionId(context)
      await controller.auth.apiSessions.termination.end(context, id, 'none')
      return emptyResponse()
    },
  }),
]
