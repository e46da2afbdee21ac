// Authorizes a request again after its body has arrived, because the caller may have lost its rights meanwhile.
import type { FastifyRequest } from 'fastify'
import { refreshCaller } from '../../../src/authentication/api-sessions/callers.ts'
import type { Controller } from '../../../src/controller/controller.ts'
import type { ControllerError } from '../../../src/foundation/errors.ts'
import { ANONYMOUS } from '../../../src/storage/transactions/context.ts'
import { authorize } from './authorize.ts'
import { mayServe } from './await-cluster.ts'

/** Returns why a request is refused now, or undefined. Also updates the caller of the request. */
export type Reauthorize = (request: FastifyRequest) => ControllerError | undefined

export function reauthorize({ auth, clock, cluster, openIdConnect }: Controller): Reauthorize {
  return (request) => {
    if (cluster && !mayServe(cluster, request)) return cluster.lease.refusal()
    const { accessToken, caller } = request.state
    if (caller.kind !== 'identity') return undefined
    const isRevoked = accessToken !== undefined && openIdConnect.revokedTokens.has(accessToken.jti)
    request.state.caller = isRevoked ? ANONYMOUS : refreshCaller(auth, caller, clock.now())
    return authorize(request)
  }
}
