// Texts that clients carry between the steps of a sign-in, and can neither read nor change: AES-256-GCM, as base64url.
//
// The key is one that all controllers of a network have, so that each opens what another one has sealed.
import { createSecretKey, type KeyObject } from 'node:crypto'
import { openBytes, sealBytes } from '../../foundation/sealed-bytes.ts'

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
    return sealBytes(this.#key, content, Buffer.from(purpose)).toString('base64url')
  }

  /** Returns the content of a text; undefined if no controller of this network sealed it for the purpose. */
  open(purpose: SealPurpose, text: string): Buffer | undefined {
    const sealed = BASE64URL.test(text) ? Buffer.from(text, 'base64url') : Buffer.alloc(0)
    // Of several spellings of the same bytes, only the one that was sent counts.
    if (sealed.toString('base64url') !== text) return undefined
    try {
      return openBytes(this.#key, sealed, Buffer.from(purpose))
    } catch {
      return undefined
    }
  }
}
