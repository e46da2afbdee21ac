// The keys of tokens: one signs, the next one is made before it does, and former ones verify as long as tokens of theirs are valid.
import { createPrivateKey, generateKeyPairSync, type KeyObject, sign, X509Certificate } from 'node:crypto'
import type { JWTPayload } from 'jose'
import type { Kysely } from 'kysely'
import type { Entity } from '../../definitions/resources/define.ts'
import { tokenKeys } from '../../definitions/resources/token-keys.ts'
import type { Clock, Instant } from '../../foundation/clock.ts'
import { newId } from '../../foundation/ids.ts'
import type { Authority } from '../../pki/authority.ts'
import { computeFingerprint, toCertificatePem } from '../../pki/certificates.ts'
import { toKeyPem } from '../../pki/pem.ts'
import type { Database } from '../../storage/database.ts'
import { type EntityStore, newEntity } from '../../storage/entities/entities.ts'
import type { SecretCipher } from '../../storage/secrets/secret-cipher.ts'
import type { Commit } from '../../storage/transactions/changes.ts'
import type { Context } from '../../storage/transactions/context.ts'
import type { DerivedRows } from '../../storage/transactions/projection.ts'

const DAY_MS = 24 * 60 * 60 * 1000

/** No token of the controller is valid for longer. */
export const MAX_TOKEN_LIFETIME_MS = 365 * DAY_MS

/** How long a key signs before the next one does. */
const SIGNING_MS = 90 * DAY_MS

// Routers refuse tokens by a key that they have not received, and those that are away receive it when they connect.
const ANNOUNCED_BEFORE_MS = DAY_MS

// The next key may be late, because no controller ran when it was due.
const RESERVE_MS = 90 * DAY_MS

/** Ours have some 1,000 characters; what clients report of themselves takes more, up to a limit. */
export const MAX_TOKEN_LENGTH = 8_192

const ALGORITHM = 'ES256'

/** A key, and the certificate by which others verify what it signed. */
interface TokenKey {
  readonly id: string
  /** The name of the key in tokens. */
  readonly kid: string
  readonly certificate: X509Certificate
  /** Of the certificate, which makes another object of it each time. */
  readonly publicKey: KeyObject
  readonly privateKey: KeyObject
  readonly signsFrom: Instant
  readonly notAfter: Instant
}

interface TokenKeysParts {
  readonly authority: Authority
  readonly cipher: SecretCipher
  readonly clock: Clock
  readonly entities: EntityStore
}

export class TokenKeys implements DerivedRows {
  readonly kind = 'derived rows'
  readonly name = 'keys of tokens'
  readonly #parts: TokenKeysParts
  #byKid: ReadonlyMap<string, TokenKey> = new Map()
  #creation: Promise<void> | undefined

  constructor(parts: TokenKeysParts) {
    this.#parts = parts
  }

  async rebuild(db: Kysely<Database>): Promise<void> {
    const rows = await db.selectFrom('token_keys').selectAll().orderBy('signsFrom').execute()
    this.#byKid = new Map(rows.map((row) => [row.kid, this.#toKey(row)]))
  }

  apply({ changes }: Commit): void {
    for (const { resource, id, after } of changes) {
      if (resource !== tokenKeys.plural) continue
      const others = [...this.#byKid.values()].filter((key) => key.id !== id)
      const keys = after ? [...others, this.#toKey(after)] : others
      keys.sort((a, b) => a.signsFrom - b.signsFrom)
      this.#byKid = new Map(keys.map((key) => [key.kid, key]))
    }
  }

  /** The certificates by which tokens are verified: also that of a key which will sign only later. */
  listCertificates(): X509Certificate[] {
    return Array.from(this.#byKid.values(), ({ certificate }) => certificate)
  }

  /** Makes the first key, unless there is one. */
  async ensureKey(context: Context): Promise<void> {
    if (this.#byKid.size > 0) return
    this.#creation ??= this.#create(context, context.clock.now(), Number.NEGATIVE_INFINITY).finally(() => {
      this.#creation = undefined
    })
    await this.#creation
  }

  /** Makes the next key if it is due, and deletes those whose tokens have all expired. Without a first key, nothing is due. */
  async renewDue(context: Context): Promise<void> {
    const now = context.clock.now()
    const newest = [...this.#byKid.values()].at(-1)
    if (!newest) return
    const nextSignsFrom = Math.max(newest.signsFrom + SIGNING_MS, now + ANNOUNCED_BEFORE_MS)
    if (nextSignsFrom - now <= ANNOUNCED_BEFORE_MS) await this.#create(context, nextSignsFrom, newest.signsFrom)
    const ended = [...this.#byKid.values()].filter(({ notAfter }) => notAfter <= now)
    if (ended.length === 0) return
    await context.write((tx) =>
      this.#parts.entities.removeAllIn(
        tx,
        tokenKeys,
        ended.map(({ id }) => id),
      ),
    )
  }

  /**
   * Signs claims with the current key (RFC 7515, section 7.1). The library would have a thread sign, which costs more than half as much
   * again, and waits for the password hashes that these threads compute. @throws if no key exists
   */
  async sign(claims: JWTPayload): Promise<string> {
    const { kid, privateKey } = this.#findSigning()
    const input = `${toBase64Url({ alg: ALGORITHM, kid, typ: 'JWT' })}.${toBase64Url(claims)}`
    // RFC 7518, section 3.4: both numbers of the signature, one after the other.
    const signature = sign('sha256', Buffer.from(input), { key: privateKey, dsaEncoding: 'ieee-p1363' })
    return `${input}.${signature.toString('base64url')}`
  }

  /** The claims of a token that a key of the controller signed for this audience, and that has not expired; undefined for any other one. */
  async verify(token: string, audience: string | readonly string[]): Promise<JWTPayload | undefined> {
    const result = await this.judge(token, audience)
    return typeof result === 'string' ? undefined : result
  }

  /** The claims of such a token, or why it is not accepted: it has expired, or it is none of a key of the controller for this audience. */
  async judge(token: string, audience: string | readonly string[]): Promise<JWTPayload | 'expired' | 'invalid'> {
    if (token.length > MAX_TOKEN_LENGTH) return 'invalid'
    const { decodeJwt, errors, jwtVerify } = await import('jose')
    try {
      // A token is good at once. If it seems to be of the future, this clock was set back, or is behind that of the controller that signed it.
      const { nbf = 0 } = decodeJwt(token)
      const options = {
        algorithms: [ALGORITHM],
        audience: typeof audience === 'string' ? audience : [...audience],
        currentDate: new Date(Math.max(this.#parts.clock.now(), nbf * 1000)),
        requiredClaims: ['exp'],
      }
      const { payload } = await jwtVerify(token, (header: { kid?: string }) => this.#findPublic(header.kid), options)
      return payload
    } catch (error) {
      return error instanceof errors.JWTExpired ? 'expired' : 'invalid'
    }
  }

  /** Whether the header of a token names a key of the controller. Nothing of the token is verified. */
  isNamedBy(token: string): boolean {
    if (token.length > MAX_TOKEN_LENGTH) return false
    try {
      const header: unknown = JSON.parse(Buffer.from(token.slice(0, token.indexOf('.')), 'base64url').toString())
      return typeof header === 'object' && header !== null && this.#byKid.has(String((header as { kid?: unknown }).kid))
    } catch {
      return false
    }
  }

  /** @throws for an id that is none of a key */
  #findPublic(kid: string | undefined): KeyObject {
    const key = this.#byKid.get(kid ?? '')
    if (!key) throw new Error('the token names no key of this controller')
    return key.publicKey
  }

  /** The newest key that signs by now. If the clock was set back, the first one that will. */
  #findSigning(): TokenKey {
    const now = this.#parts.clock.now()
    const keys = [...this.#byKid.values()]
    const key = keys.findLast(({ signsFrom }) => signsFrom <= now) ?? keys[0]
    if (!key) throw new Error('no token key exists')
    return key
  }

  /** @param newest when the newest key begins to sign that this one comes after */
  async #create(context: Context, signsFrom: Instant, newest: Instant): Promise<void> {
    const { authority, cipher, entities } = this.#parts
    const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const end = signsFrom + SIGNING_MS + MAX_TOKEN_LIFETIME_MS + RESERVE_MS
    const certificate = authority.issueTokenSigner(publicKey, context.clock.now(), end)
    const id = newId()
    const values = {
      id,
      kid: computeFingerprint(certificate),
      certificate: toCertificatePem(certificate),
      encryptedKey: cipher.encrypt(toKeyPem(privateKey), toPlace(id)),
      signsFrom,
      notAfter: end,
    }
    await context.write(async (tx) => {
      // Another controller may have made it meanwhile.
      const keys = await tx.db.selectFrom('token_keys').select('signsFrom').execute()
      if (keys.every((key) => key.signsFrom <= newest))
        await entities.insert(tx, tokenKeys, newEntity(tx, tokenKeys, values))
    })
  }

  #toKey({ id, kid, certificate: pem, encryptedKey, signsFrom, notAfter }: StoredTokenKey): TokenKey {
    const privateKey = createPrivateKey(this.#parts.cipher.decrypt(encryptedKey, toPlace(id)))
    const certificate = new X509Certificate(pem)
    return { id, kid, certificate, publicKey: certificate.publicKey, privateKey, signsFrom, notAfter }
  }
}

const toBase64Url = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')

type StoredTokenKey = Pick<
  Entity<typeof tokenKeys>,
  'id' | 'kid' | 'certificate' | 'encryptedKey' | 'signsFrom' | 'notAfter'
>

const toPlace = (id: string) => ({ resource: tokenKeys.plural, id, field: 'encryptedKey' })
