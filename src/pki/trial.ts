// The trial of an adopted network: while it lasts, the former controller can take the network back, because it knows every certificate.
import type { X509Certificate } from 'node:crypto'
import type { Instant } from '../foundation/clock.ts'
import { readNotAfter } from './certificates.ts'

/**
 * Whether a certificate must not be replaced yet: the former controller would not know the new one. One that ends within the trial is
 * replaced nevertheless.
 * @param trialEnds undefined if there is no trial
 */
export function isRenewalHeld(
  certificate: X509Certificate,
  trialEnds: Instant | undefined,
  now: Instant,
): trialEnds is Instant {
  return isTrialUnderWay(trialEnds, now) && readNotAfter(certificate) > trialEnds
}

export function isTrialUnderWay(trialEnds: Instant | undefined, now: Instant): trialEnds is Instant {
  return trialEnds !== undefined && now < trialEnds
}
