// Uses up the rate at which an identity may write, as many requests of it do.
import type { TestController } from './controller.ts'

/** Counts as many writes as the identity may make within a second and at once. */
export function useUpWrites({ controller, clock }: TestController, identityId: string): void {
  const count = controller.config['limits.writesPerIdentity'] * 10
  const caller = { identityId, isAdmin: false, isPartial: false }
  const { writeLimits } = controller.auth
  for (let at = 0; at < count; at++)
    writeLimits.requireRate(caller, { address: '127.0.0.1', isOwnChange: false }, clock.now())
}
