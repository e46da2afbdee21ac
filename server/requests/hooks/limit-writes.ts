// Refuses an identity that writes too often, before its body is read. Full sessions of administrators are not limited. Sign-ins and enrollments
// are refused if no change would be accepted, before they cost a password or a certificate.
import type { Controller } from '../../../src/controller/controller.ts'
import type { Check } from './check.ts'

/** @throws SERVER_TOO_MANY_REQUESTS */
export function limitWrites({ auth, clock, store }: Controller): Check {
  return ({ state, ip: address }) => {
    const { caller, route } = state
    const { operation } = route
    if (!operation || operation.method === 'GET') return undefined
    if ('public' in operation.access) {
      store.requireRoom()
      return undefined
    }
    if (caller.kind !== 'identity') return undefined
    auth.writeLimits.requireRate(caller, { address, isOwnChange: operation.isOwnChange === true }, clock.now())
  }
}
