// Encrypts bytes so that who has them can neither read nor change them: AES-256-GCM under a random nonce.
import { type CipherKey, createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'

const ALGORITHM = 'aes-256-gcm'
// NIST SP 800-38D §8.2: a random nonce of 96 bits is good for 2^32 messages under one key.
export const NONCE_BYTES = 12
const TAG_BYTES = 16

/** Returns nonce, ciphertext and tag. @param context the same bytes are needed to open them */
export function sealBytes(key: CipherKey, content: Uint8Array, context: Uint8Array): Buffer {
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv(ALGORITHM, key, nonce, { authTagLength: TAG_BYTES }).setAAD(context)
  return Buffer.concat([nonce, cipher.update(content), cipher.final(), cipher.getAuthTag()])
}

/** @throws Error if the bytes were not sealed under the key for the context, or were changed */
export function openBytes(key: CipherKey, sealed: Uint8Array, context: Uint8Array): Buffer {
  if (sealed.length < NONCE_BYTES + TAG_BYTES) throw new RangeError('the sealed bytes are too few')
  const tagAt = sealed.length - TAG_BYTES
  const decipher = createDecipheriv(ALGORITHM, key, sealed.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES })
    .setAAD(context)
    .setAuthTag(sealed.subarray(tagAt))
  return Buffer.concat([decipher.update(sealed.subarray(NONCE_BYTES, tagAt)), decipher.final()])
}
