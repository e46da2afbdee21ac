// What a person is told of a controller whose root certificate is not the pinned one.
import type { Failure } from './failure-text.ts'

/** The fingerprint to compare with must come from elsewhere, so the hint does not repeat the offered one. */
export function describeChangedRoot(
  url: string,
  offered: string,
  pinned: readonly string[],
): Failure & { hint: string } {
  return {
    code: 'ROOT_CHANGED',
    message: `${url} is another controller than before: its root certificate has the SHA-256 ${offered}, expected was ${pinned.join(' or ')}`,
    hint: `if it was made anew: controller login ${url} --fingerprint SHA-256, as "controller serve" prints it there`,
  }
}
