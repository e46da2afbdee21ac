// Secrets at rest: what encrypts them, where a ciphertext is good, and what is declared as encrypted.
import { randomBytes } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import type { AnyResource } from '../../src/definitions/resources/define.ts'
import { resources } from '../../src/definitions/resources/index.ts'
import { SECRETS_KEY_BYTES, SecretCipher } from '../../src/storage/secrets/secret-cipher.ts'

const key = () => randomBytes(SECRETS_KEY_BYTES)
const PLACE = { resource: 'mfa-enrollments', id: '01A', field: 'encryptedSecret' }

describe('a secret', () => {
  it('is read back from its ciphertext, which does not hold it', () => {
    const cipher = new SecretCipher(key())

    const ciphertext = cipher.encrypt('näher am Kern', PLACE)

    expect(cipher.decrypt(ciphertext, PLACE)).toBe('näher am Kern')
    expect(Buffer.from(ciphertext.split('.')[1] ?? '', 'base64url').includes('Kern')).toBe(false)
  })

  it('has another ciphertext each time', () => {
    const cipher = new SecretCipher(key())

    expect(cipher.encrypt('same', PLACE)).not.toBe(cipher.encrypt('same', PLACE))
  })

  it.each(Object.keys(PLACE))('cannot be decrypted at a place with another %s', (member) => {
    const cipher = new SecretCipher(key())
    const ciphertext = cipher.encrypt('secret', PLACE)

    expect(() => cipher.decrypt(ciphertext, { ...PLACE, [member]: 'another' })).toThrow('cannot be decrypted')
  })

  it('cannot be decrypted if any bit of it changed', () => {
    const cipher = new SecretCipher(key())
    const [id, text = ''] = cipher.encrypt('secret', PLACE).split('.')
    const sealed = Buffer.from(text, 'base64url')

    for (let at = 0; at < sealed.length; at += 1) {
      const changed = Buffer.from(sealed)
      changed[at] = (changed[at] as number) ^ 1
      expect(() => cipher.decrypt(`${id}.${changed.toString('base64url')}`, PLACE)).toThrow('cannot be decrypted')
    }
  })

  it.each(['', '.', 'x', 'no-key-at-all', '0000000000000000.AAAA'])('is not read from %j', (ciphertext) => {
    expect(() => new SecretCipher(key()).decrypt(ciphertext, PLACE)).toThrow('does not have')
  })

  it('is cut short without being read', () => {
    const cipher = new SecretCipher(key())
    const ciphertext = cipher.encrypt('secret', PLACE)

    for (const length of [17, 20, ciphertext.length - 2]) {
      expect(() => cipher.decrypt(ciphertext.slice(0, length), PLACE)).toThrow('cannot be decrypted')
    }
  })
})

describe('a key', () => {
  it('decrypts what it encrypted as the previous one, and is not current then', () => {
    const [older, newer] = [key(), key()]
    const ciphertext = new SecretCipher(older).encrypt('secret', PLACE)
    const rotating = new SecretCipher(newer, older)

    expect(rotating.decrypt(ciphertext, PLACE)).toBe('secret')
    expect([rotating.isCurrent(ciphertext), rotating.hasKeyOf(ciphertext)]).toEqual([false, true])
    expect(rotating.isCurrent(rotating.encrypt('secret', PLACE))).toBe(true)
    expect(new SecretCipher(newer).hasKeyOf(ciphertext)).toBe(false)
  })
})

describe('the fields that are declared as encrypted', () => {
  const encrypted = (resources as readonly AnyResource[]).flatMap(({ plural, fields }) =>
    Object.entries(fields).flatMap(([name, { options }]) => (options.isEncrypted ? [{ plural, name, options }] : [])),
  )

  it('are internal and secret, and no filter knows them', () => {
    expect(encrypted.length).toBeGreaterThan(0)
    for (const { options } of encrypted) {
      expect(options).toMatchObject({ access: 'internal', secret: true })
      expect(options.filter).toBeUndefined()
    }
  })
})
