// Refuses an identity that writes too often, before its body is read. Administrators are not limited.
import type { FastifyRequest } from 'fastify'
import type { Controller } from '../../src/controller.ts'

/** @throws SERVER_TOO_MANY_REQUESTS */
export function limitWrites({ auth, clock }: Controller) {
  return async ({ routeOptions, state }: FastifyRequest): Promise<void> => {
    const { operation } = routeOptions.config
    const { caller } = state
    if (!operation || operation.method === 'GET' || 'public' in operation.access) return
    if (caller.kind !== 'identity' || caller.isAdmin) return
    auth.writeLimits.requireRate(caller.identityId, { isOwnChange: operation.isOwnChange === true }, clock.now())
  }
}
