// The files of the keys that secrets are encrypted under, and their order during a rotation.
//
// Opening the data directory completes a rotation that a crash interrupted.
import { existsSync, rmSync } from 'node:fs'
import { loadKey, replaceKey, writePrivateFile } from '../../pki/files.ts'
import { SECRETS_KEY_BYTES, SecretCipher } from './secret-cipher.ts'

/** The paths of the keys. The previous key exists only while a rotation is not finished. */
export interface SecretsKeyPaths {
  readonly secretsKey: string
  readonly previousSecretsKey: string
}

/** @throws KeyFileError if the current key is missing, or a key is damaged */
export function loadSecretCipher({ secretsKey, previousSecretsKey }: SecretsKeyPaths): SecretCipher {
  const current = loadKey(secretsKey, SECRETS_KEY_BYTES)
  if (!existsSync(previousSecretsKey)) return new SecretCipher(current)
  return new SecretCipher(current, loadKey(previousSecretsKey, SECRETS_KEY_BYTES))
}

/** Whether secrets may still be encrypted under a previous key. */
export function isRotationUnfinished({ previousSecretsKey }: SecretsKeyPaths): boolean {
  return existsSync(previousSecretsKey)
}

/**
 * Makes a new key the current one, and keeps the previous one. The previous key is on disk before the new one replaces it, so
 * that a crash between the two loses neither.
 * @throws Error if an earlier rotation is not finished, because its previous key would be lost
 */
export function beginRotation(paths: SecretsKeyPaths): void {
  if (isRotationUnfinished(paths)) throw new Error('an earlier rotation of the key of secrets is not finished')
  writePrivateFile(paths.previousSecretsKey, loadKey(paths.secretsKey, SECRETS_KEY_BYTES))
  replaceKey(paths.secretsKey, SECRETS_KEY_BYTES)
}

/** Deletes the previous key. No secret may be encrypted under it any more. */
export function finishRotation({ previousSecretsKey }: SecretsKeyPaths): void {
  rmSync(previousSecretsKey, { force: true })
}
