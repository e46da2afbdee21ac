// The failure for a controller whose root certificate is not the pinned one.
import type { Failure } from './failure-text.ts'

/** The hint does not repeat the offered fingerprint, because the user must obtain it from a trusted place. */
export function describeChangedRoot(
  url: string,
  offered: string,
  pinned: readonly string[],
): Failure & { hint: string } {
  return {
    code: 'ROOT_CHANGED',
    message: [
      `the root certificate of ${url} has changed: another host may intercept the connection, or the controller was created`,
      `again; its SHA-256 is ${offered}, expected ${pinned.join(' or ')}`,
    ].join(' '),
    hint: `ask an operator of the controller which SHA-256 "controller serve" prints, then: controller login ${url} --fingerprint SHA-256`,
  }
}
