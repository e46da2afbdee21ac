// The members of a session that are true at the moment it is looked at: its routers, and the policies that grant it.
import type { Access } from '../../access/access.ts'
import { findRoleBearerOfSession } from '../../access/role-bearers.ts'
import type { SessionClaims, SessionTokens } from '../../access/sessions/session-tokens.ts'
import type { ApiSessions } from '../../authentication/api-sessions/api-sessions.ts'
import type { ComputedInput } from '../../definitions/resources/define.ts'
import type { sessions } from '../../definitions/resources/sessions.ts'
import { EMPTY_OR_NULL } from '../../definitions/schema/json-forms.ts'
import { type Awaitable, whenReady } from '../../foundation/awaitable.ts'
import type { UsableRouters } from '../../network/routers/usable-routers.ts'
import type { PolicyType } from '../../policy/policy-index.ts'
import type { RoleBearer } from '../../policy/role-selector.ts'
import type { Behavior } from '../../storage/behavior.ts'
import { RawJson } from '../../storage/records/raw-json.ts'
import { findReferences } from '../../storage/records/references.ts'
import type { ReadContext } from '../../storage/transactions/context.ts'

/** The session is shown to the caller that has just made it: clients do not expect policies there. */
export interface NewSessionView {
  readonly maker: RoleBearer
}

/** The collaborators of the behavior of sessions. */
interface SessionBehaviorParts {
  readonly access: Access
  readonly apiSessions: ApiSessions
  readonly sessionTokens: SessionTokens
  readonly usableRouters: UsableRouters
}

export class SessionBehavior implements Behavior<typeof sessions> {
  readonly #access: Access
  readonly #apiSessions: ApiSessions
  readonly #sessionTokens: SessionTokens
  readonly #usableRouters: UsableRouters

  constructor({ access, apiSessions, sessionTokens, usableRouters }: SessionBehaviorParts) {
    this.#access = access
    this.#apiSessions = apiSessions
    this.#sessionTokens = sessionTokens
    this.#usableRouters = usableRouters
  }

  computeFields(
    context: ReadContext,
    rows: readonly ComputedInput[],
    view: unknown,
  ): Awaitable<Record<string, unknown>[]> {
    const maker = (view as NewSessionView | undefined)?.maker
    if (maker) {
      return whenReady(this.#getTokens(rows), (tokens) =>
        rows.map(({ serviceId }, at) => ({
          token: tokens[at],
          edgeRouters: this.#renderRouters(maker, serviceId as string),
        })),
      )
    }
    return Promise.all(rows.map((row) => this.#describe(context, row)))
  }

  async #describe(context: ReadContext, row: ComputedInput): Promise<Record<string, unknown>> {
    const [identityId, apiSessionId] = [row.identityId as string, row.apiSessionId as string]
    const identity = await findRoleBearerOfSession(this.#apiSessions, context, { identityId, apiSessionId })
    const serviceId = row.serviceId as string
    const granting = this.#access.filterGranting(this.#access.findPolicies(identity, row.type as PolicyType), serviceId)
    // In an order that does not depend on their history.
    const ids = granting.map(({ id }) => id).sort()
    const policies = await findReferences(context.db, 'service-policies', ids)
    return {
      // A signed one is of use to its own client only, and costs a signature.
      token: await (isOwn(context, row) ? this.#getToken(row) : this.#apiSessions.deriveToken(row.id as string)),
      edgeRouters: this.#renderRouters(identity, serviceId),
      servicePolicies: ids.flatMap((id) => new RawJson(policies.get(id)?.text ?? 'null')),
    }
  }

  /** At once if all are available, because clients ask for their sessions again and again. */
  #getTokens(rows: readonly ComputedInput[]): Awaitable<readonly string[]> {
    const tokens = rows.map((row) => this.#getToken(row))
    return tokens.every((token) => typeof token === 'string') ? tokens : Promise.all(tokens)
  }

  #getToken({ id, identityId, apiSessionId, serviceId, type }: ComputedInput): Awaitable<string> {
    return this.#sessionTokens.getToken({ id, identityId, apiSessionId, serviceId, type } as SessionClaims)
  }

  #renderRouters(identity: RoleBearer, serviceId: string): RawJson {
    const text = this.#usableRouters.render(identity, serviceId)
    return new RawJson(text === '[]' ? EMPTY_OR_NULL : text)
  }
}

/** Whether the caller is the client that the session belongs to. */
function isOwn({ caller }: ReadContext, { apiSessionId }: ComputedInput): boolean {
  return caller.kind === 'identity' && caller.apiSessionId === apiSessionId
}
