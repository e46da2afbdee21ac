// Time-based codes (RFC 6238): SHA-1, six digits, steps of 30 seconds, as every authenticator app computes them.
import { createHmac, randomBytes } from 'node:crypto'
import { createGuardrails, generateSecret, generateURI, verifySync } from 'otplib'
import type { Instant } from '../../foundation/clock.ts'
import { isEqualInConstantTime } from '../../foundation/constant-time.ts'

const STEP_SECONDS = 30
/** Secrets of 10 bytes are those of OpenZiti's controller: an adopted network keeps them. */
const guardrails = createGuardrails({ MIN_SECRET_BYTES: 10 })
/** How much of a name an authenticator app shows; it also bounds the size of the QR code. */
const MAX_LABEL_LENGTH = 64

/** The HMAC of Node.js, because codes are checked inside transactions: the library's own takes a hundred times as long. */
const nodeCrypto = {
  name: 'node',
  hmac: (algorithm: string, key: Uint8Array, data: Uint8Array) => createHmac(algorithm, key).update(data).digest(),
  randomBytes: (length: number) => randomBytes(length),
  constantTimeEqual: isEqualInConstantTime,
}

/** Returns a new secret: 20 random bytes, as base32. */
export function generateTotpSecret(): string {
  return generateSecret({ length: 20, crypto: nodeCrypto })
}

/**
 * Returns the step of a code, counted since 1970, or undefined if it is the code of no step in the window.
 * @param windowSteps how many steps before and after the current one are accepted
 */
export function findStep(secret: string, code: string, now: Instant, windowSteps: number): number | undefined {
  if (!/^[0-9]{6}$/.test(code)) return undefined
  const epoch = Math.floor(now / 1000)
  const epochTolerance = windowSteps * STEP_SECONDS
  const options = { epoch, epochTolerance, period: STEP_SECONDS, crypto: nodeCrypto, guardrails }
  const match = verifySync({ secret, token: code, ...options })
  return match.valid && 'timeStep' in match ? match.timeStep : undefined
}

/** Returns the URL that an authenticator app reads from a QR code. */
export function buildProvisioningUrl(issuer: string, identityName: string, secret: string): string {
  return generateURI({ issuer, label: toLabel(identityName), secret })
}

/** A colon separates the issuer from the label, so the label has none. */
function toLabel(name: string): string {
  return [...name].slice(0, MAX_LABEL_LENGTH).join('').replaceAll(':', ' ')
}
