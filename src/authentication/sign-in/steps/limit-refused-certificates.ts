// Certificate: refuses it before any costly check if sign-ins by it were refused too often.
import type { Step } from '../sign-in-attempt.ts'

/** @throws SERVER_TOO_MANY_REQUESTS if they were */
export const limitRefusedCertificates: Step = ({ parts, context, certificateHolder }) => {
  if (certificateHolder !== undefined) parts.auth.refusedCertificates.require(certificateHolder, context.clock.now())
}
