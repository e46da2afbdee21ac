// Texts that clients carry between the steps of a sign-in, and can neither read nor change: AES-256-GCM, as base64url.
//
// The key is one that all controllers of a network have, so that each opens what another one has sealed.
import { createCipheriv, createDecipheriv, createSecretKey, type KeyObject, randomBytes } from 'node:crypto'

const ALGORITHM = 'aes-256-gcm'
const NONCE_BYTES = 12
const TAG_BYTES = 16
const BASE64URL = /^[\w-]+$/

/** The purpose of a text: one that was sealed for another purpose is not opened. */
export type SealPurpose = 'request' | 'code' | 'external'

export class SealedTexts {
  readonly #key: KeyObject

  /** @param key 32 bytes, used for nothing else */
  constructor(key: Buffer) {
    this.#key = createSecretKey(key)
  }

  seal(purpose: SealPurpose, content: Buffer): string {
    const nonce = randomBytes(NONCE_BYTES)
    const cipher = createCipheriv(ALGORITHM, this.#key, nonce, { authTagLength: TAG_BYTES }).setAAD(
      Buffer.from(purpose),
    )
    const parts = [nonce, cipher.update(content), cipher.final(), cipher.getAuthTag()]
    return Buffer.concat(parts).toString('base64url')
  }

  /** Returns the content of a text; undefined if no controller of this network sealed it for the purpose. */
  open(purpose: SealPurpose, text: string): Buffer | undefined {
    const sealed = BASE64URL.test(text) ? Buffer.from(text, 'base64url') : Buffer.alloc(0)
    // Of several spellings of the same bytes, only the one that was sent counts.
    if (sealed.length < NONCE_BYTES + TAG_BYTES || sealed.toString('base64url') !== text) return undefined
    const tagAt = sealed.length - TAG_BYTES
    try {
      const decipher = createDecipheriv(ALGORITHM, this.#key, sealed.subarray(0, NONCE_BYTES), {
        authTagLength: TAG_BYTES,
      })
        .setAAD(Buffer.from(purpose))
        .setAuthTag(sealed.subarray(tagAt))
      return Buffer.concat([decipher.update(sealed.subarray(NONCE_BYTES, tagAt)), decipher.final()])
    } catch {
      return undefined
    }
  }
}
