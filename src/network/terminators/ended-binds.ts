// Ends what hosts bound by sessions that have ended, at routers of release 1: those do not follow the end of a session whose token is
// signed, and would leave its host in the belief that it is reached.
//
// The router is told as if it had just asked for the terminator: it gives it up, and tells the host, which asks for another session.
import type { SessionTokens } from '../../access/sessions/session-tokens.ts'
import type { Log } from '../../foundation/log.ts'
import type { Commit } from '../../storage/transactions/changes.ts'
import type { Context } from '../../storage/transactions/context.ts'
import type { SideEffect } from '../../storage/transactions/projection.ts'
import type { ConnectedRouter, ConnectedRouters } from '../routers/connected-routers.ts'
import type { HostedTerminators } from './hosted-terminators.ts'
import type { LiveTerminator, TerminatorDirectory } from './terminator-directory.ts'

// As many as routers remove by a message.
const REMOVED_PER_TRANSACTION = 100

interface EndedBindsParts {
  readonly connected: ConnectedRouters
  readonly directory: TerminatorDirectory
  readonly hosted: Pick<HostedTerminators, 'removeEnded'>
  readonly log: Log
  readonly sessionTokens: Pick<SessionTokens, 'areSigned'>
  createSystemContext(): Context
}

export class EndedBinds implements SideEffect {
  readonly kind = 'side effect'
  readonly name = 'binds of ended sessions'
  readonly #parts: EndedBindsParts

  constructor(parts: EndedBindsParts) {
    this.#parts = parts
  }

  /** The directory has followed the commit already. */
  apply(_commit: Commit): void {
    const byRouter = new Map<string, LiveTerminator[]>()
    for (const terminator of this.#parts.directory.takeEnded()) {
      const others = byRouter.get(terminator.routerId)
      if (others) others.push(terminator)
      else byRouter.set(terminator.routerId, [terminator])
    }
    for (const [routerId, terminators] of byRouter) {
      const router = this.#parts.connected.get(routerId)
      if (router) this.#end(router, terminators)
    }
  }

  async restart(): Promise<void> {
    for (const router of this.#parts.connected.listEdgeRouters()) this.endAllOf(router)
  }

  /** Ends what a router has not heard of, because it was away or has another process of the controller now. */
  endAllOf(router: ConnectedRouter): void {
    this.#end(router, this.#parts.directory.listEndedOfRouter(router.id))
  }

  #end(router: ConnectedRouter, terminators: readonly LiveTerminator[]): void {
    const { log, sessionTokens } = this.#parts
    if (!sessionTokens.areSigned || router.hello.hasDataModel) return
    // Routers that host services themselves have opaque tokens.
    const ended = terminators.filter(({ binding }) => binding === 'edge')
    if (ended.length === 0) return
    for (const { id } of ended) router.connection.endTerminator(id)
    this.#remove(ended).catch((error: unknown) => {
      log.error({ err: error, routerId: router.id }, 'terminators whose sessions have ended could not be removed')
    })
  }

  async #remove(ended: readonly LiveTerminator[]): Promise<void> {
    const { createSystemContext, hosted } = this.#parts
    const context = createSystemContext()
    for (let at = 0; at < ended.length; at += REMOVED_PER_TRANSACTION)
      await hosted.removeEnded(context, ended.slice(at, at + REMOVED_PER_TRANSACTION))
  }
}
