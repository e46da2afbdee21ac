// The encryption of backups: any tool that reads the format decrypts them, and any change is detected.
import { describe, expect, it } from 'vitest'
import { type DecryptionError, decrypt, encrypt } from '../../src/maintenance/backup/age.ts'

const PASSPHRASE = 'correct horse battery'
const CHUNK = 64 * 1024

async function* inPieces(bytes: Buffer, size = 1000): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

async function collect(chunks: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const pieces: Uint8Array[] = []
  for await (const chunk of chunks) pieces.push(chunk)
  return Buffer.concat(pieces)
}

// A file names its cost, so that what these tests open is as cheap.
const CHEAP_LOG_N = 10

const seal = (plain: Buffer) => collect(encrypt(inPieces(plain), PASSPHRASE, CHEAP_LOG_N))
const open = (sealed: Buffer, passphrase = PASSPHRASE) => collect(decrypt(inPieces(sealed), passphrase))

describe('the encryption of backups', () => {
  it.each([0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK])('returns %i bytes as they were', async (length) => {
    const plain = Buffer.alloc(length, 'abc')

    expect((await open(await seal(plain))).equals(plain)).toBe(true)
  })

  it('derives the key from the passphrase at the cost that OWASP recommends', async () => {
    const sealed = await collect(encrypt(inPieces(Buffer.from('secret')), PASSPHRASE))

    expect(sealed.toString('latin1')).toMatch(/^-> scrypt \S+ 17$/m)
    expect((await open(sealed)).toString()).toBe('secret')
  })

  it('reads a file that the reference implementation of the format wrote: one letter', async () => {
    const file = Buffer.from(
      'YWdlLWVuY3J5cHRpb24ub3JnL3YxCi0+IHNjcnlwdCA0OHFmTWJkTWVkMjRrSGdtRlFWYTVBIDEyCkpSUXl1RnhlYWxtN2Yrc1FXYmt1WUpvZnAwR2lqVk4yK2k1dHMvR21HTm8KLS0tIElsNCtPOXpUbEZzMnlwWE1PekRUUmk1RlIwUnJ5S2YvM01JSGZXM25Jek0K5s3pabVM3BwX3Stgf3d3zZQFtlWgPKR4QUgVVxPUImh0',
      'base64',
    )

    expect((await open(file)).toString()).toBe('a')
  })

  it('refuses a wrong passphrase as such', async () => {
    const error = await open(await seal(Buffer.from('secret')), 'wrong').catch((failure: DecryptionError) => failure)

    expect(error).toMatchObject({ name: 'DecryptionError', isWrongPassphrase: true })
  })

  it('detects a change of any part, and a cut at any length', async () => {
    const sealed = await seal(Buffer.alloc(CHUNK + 10, 1))
    const header = sealed.indexOf('---')
    const changed = [0, 30, header + 5, header + 60, sealed.length - 1].map((at) => {
      const copy = Buffer.from(sealed)
      copy[at] = (copy[at] as number) ^ 1
      return copy
    })
    // The last one ends where a chunk ends.
    const cut = [sealed.length - 1, header, sealed.length - 26].map((end) => sealed.subarray(0, end))

    for (const file of [...changed, ...cut]) await expect(open(file)).rejects.toMatchObject({ name: 'DecryptionError' })
  })

  it('never writes the same bytes twice', async () => {
    const [first, second] = [await seal(Buffer.from('same')), await seal(Buffer.from('same'))]

    expect(first.equals(second)).toBe(false)
  })
})
