// Holds a request up until its controller knows enough to serve it, if that is one of several: contact with the cluster for what grants
// rights, what its client has seen at another controller, and a session that has only just begun there.
import type { FastifyRequest } from 'fastify'
import type { Controller } from '../../../src/controller/controller.ts'
import { invalidError } from '../../../src/foundation/errors.ts'
import type { Cluster } from '../../../src/storage/cluster/cluster.ts'
import { readSessionHeader } from '../../api/dialects.ts'
import { POSITION_HEADER } from '../../api/position.ts'
import { readBearerTokens } from '../requests.ts'
import type { Identify } from './identify.ts'

/** Identifies the caller of a request, again if that had to wait. */
export function awaitCluster({ auth, cluster, store }: Controller, identify: Identify): Identify {
  if (!cluster) return identify
  return (request, done) => {
    identify(request, (failure) => {
      if (failure || isReady(request)) return done(failure)
      wait(request).then(() => identify(request, done), done)
    })
  }

  function isReady(request: FastifyRequest): boolean {
    const { headers } = request.raw
    const isPositionKnown = headers[POSITION_HEADER] === undefined || Number(headers[POSITION_HEADER]) <= store.position
    return isPositionKnown && mayServe(cluster, request) && !isStranger(request)
  }

  async function wait(request: FastifyRequest): Promise<void> {
    const position = request.raw.headers[POSITION_HEADER]
    if (position !== undefined) await cluster?.waitForPosition(parsePosition(String(position)))
    else if (isStranger(request)) await cluster?.catchUp()
    if (!mayServe(cluster, request)) await cluster?.lease.waitForContact()
  }

  /** Whether the session that a request names may have begun at another controller just now. */
  function isStranger({ raw, state }: FastifyRequest): boolean {
    if (state.caller.kind !== 'anonymous') return false
    const { token } = readSessionHeader(raw.headers)
    return token === undefined ? readBearerTokens(raw).length > 0 : !auth.apiSessions.hasEnded(token)
  }
}

/** Whether nothing is granted by what this controller may not know. */
export function mayServe(cluster: Cluster | undefined, { state }: FastifyRequest): boolean {
  const { operation } = state.route
  return cluster === undefined || cluster.lease.isHeld || !operation || operation.grantsNothing !== undefined
}

/** @throws COULD_NOT_VALIDATE */
function parsePosition(text: string): number {
  const position = Number(text)
  if (!/^\d{1,16}$/.test(text) || !Number.isSafeInteger(position))
    throw invalidError(POSITION_HEADER, 'must be a position of the log', text)
  return position
}
