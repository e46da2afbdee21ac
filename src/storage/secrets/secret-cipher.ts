// Encrypts the secrets that the controller must be able to read back, so that the database alone does not reveal them.
import { createHmac, createSecretKey, type KeyObject } from 'node:crypto'
import { openBytes, sealBytes } from '../../foundation/sealed-bytes.ts'

/** The length of a key, in bytes: AES-256. */
export const SECRETS_KEY_BYTES = 32

/** The column of a record that holds a ciphertext. A ciphertext that is copied to another place cannot be decrypted there. */
export interface SecretPlace {
  /** The plural name of the resource. */
  readonly resource: string
  readonly id: string
  readonly field: string
}

/** A ciphertext was not made under a key of this controller, not for this place, or was changed. */
export class SecretError extends Error {
  override readonly name = 'SecretError'
}

interface SecretsKey {
  readonly id: string
  readonly key: KeyObject
}

/** Encrypts under the current key, and decrypts what the current or the previous key encrypted. */
export class SecretCipher {
  readonly #current: SecretsKey
  readonly #byId: ReadonlyMap<string, SecretsKey>

  /** @param previous the key before a rotation, until every secret is encrypted under the current key */
  constructor(current: Buffer, previous?: Buffer) {
    this.#current = toSecretsKey(current)
    const keys = previous ? [this.#current, toSecretsKey(previous)] : [this.#current]
    this.#byId = new Map(keys.map((key) => [key.id, key]))
  }

  /** Returns `key id.nonce, ciphertext and tag` as base64url: AES-256-GCM, bound to the place. */
  encrypt(plaintext: string, place: SecretPlace): string {
    const { id, key } = this.#current
    return `${id}.${sealBytes(key, Buffer.from(plaintext), toAdditionalData(place)).toString('base64url')}`
  }

  /** @throws SecretError if no key of this controller made the ciphertext for this place */
  decrypt(ciphertext: string, place: SecretPlace): string {
    const key = this.#byId.get(readKeyId(ciphertext))
    if (!key)
      throw new SecretError(`${describePlace(place)} is encrypted under a key that this controller does not have`)
    const sealed = Buffer.from(ciphertext.slice(key.id.length + 1), 'base64url')
    try {
      return openBytes(key.key, sealed, toAdditionalData(place)).toString('utf8')
    } catch (error) {
      throw new SecretError(`${describePlace(place)} cannot be decrypted: it was changed outside the controller`, {
        cause: error,
      })
    }
  }

  /** Whether a ciphertext was made under a key of this controller. */
  hasKeyOf(ciphertext: string): boolean {
    return this.#byId.has(readKeyId(ciphertext))
  }

  /** Whether a ciphertext was made under the current key. */
  isCurrent(ciphertext: string): boolean {
    return readKeyId(ciphertext) === this.#current.id
  }
}

/** The id of a key reveals nothing of it. */
function toSecretsKey(bytes: Buffer): SecretsKey {
  const id = createHmac('sha256', bytes).update('key id').digest('hex').slice(0, 16)
  return { id, key: createSecretKey(bytes) }
}

function readKeyId(ciphertext: string): string {
  return ciphertext.slice(0, Math.max(0, ciphertext.indexOf('.')))
}

function toAdditionalData({ resource, id, field }: SecretPlace): Buffer {
  return Buffer.from(JSON.stringify([resource, id, field]))
}

function describePlace({ resource, id, field }: SecretPlace): string {
  return `the secret ${field} of ${resource}/${id}`
}
