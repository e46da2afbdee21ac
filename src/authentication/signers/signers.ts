// The external JWT signers in memory, with their keys, because tokens are verified on every request that carries one.
import { X509Certificate } from 'node:crypto'
import type { Kysely } from 'kysely'
import type { AnyRow } from '../../definitions/resources/define.ts'
import { externalJwtSigners } from '../../definitions/resources/external-jwt-signers.ts'
import { computeFingerprint, readPublicKey } from '../../pki/certificates.ts'
import type { Database } from '../../storage/database.ts'
import { entityFromRow } from '../../storage/entities/rows.ts'
import type { SignerRecord } from '../../storage/external-tokens.ts'
import type { Commit } from '../../storage/transactions/changes.ts'
import type { DerivedRows } from '../../storage/transactions/projection.ts'
import { describeKey, type SigningKey, toSigningKey } from './signing-keys.ts'

/** A signer with its keys by their ids. */
export interface Signer extends SignerRecord {
  readonly keys: ReadonlyMap<string, SigningKey>
}

export class Signers implements DerivedRows {
  readonly kind = 'derived rows'
  readonly name = 'external JWT signers'
  #byId = new Map<string, Signer>()
  #byIssuer = new Map<string, Signer>()

  async rebuild(db: Kysely<Database>): Promise<void> {
    const rows = await db.selectFrom('external_jwt_signers').selectAll().orderBy('n').execute()
    this.#byId = new Map()
    this.#byIssuer = new Map()
    for (const row of rows) this.#set(entityFromRow(externalJwtSigners, row as AnyRow) as SignerRecord)
  }

  apply({ changes }: Commit): void {
    for (const { resource, id, after } of changes) {
      if (resource !== externalJwtSigners.plural) continue
      if (after) this.#set(after)
      else this.#remove(id)
    }
  }

  get(id: string): Signer | undefined {
    return this.#byId.get(id)
  }

  findByIssuer(issuer: string): Signer | undefined {
    return this.#byIssuer.get(issuer)
  }

  /** In the order in which they were created. */
  all(): Iterable<Signer> {
    return this.#byId.values()
  }

  #set(record: SignerRecord): void {
    const signer = { ...record, keys: readKeys(record) }
    this.#removeIssuer(signer.id)
    // A signer that changes keeps its place.
    this.#byId.set(signer.id, signer)
    this.#byIssuer.set(signer.issuer, signer)
  }

  #remove(id: string): void {
    this.#removeIssuer(id)
    this.#byId.delete(id)
  }

  #removeIssuer(id: string): void {
    const signer = this.#byId.get(id)
    if (signer && this.#byIssuer.get(signer.issuer) === signer) this.#byIssuer.delete(signer.issuer)
  }
}

/** The keys of a signer by their ids. */
export function readKeys({ certPem, kid, fetchedKeys }: SignerRecord): ReadonlyMap<string, SigningKey> {
  const keys = certPem === null ? (fetchedKeys?.keys ?? []).map(toSigningKey) : [readCertificateKey(certPem, kid)]
  return new Map(keys.flatMap((key) => (key ? [[key.kid, key] as const] : [])))
}

/** The dates of the certificate do not count: it only carries the key. */
function readCertificateKey(certPem: string, kid: string | null): SigningKey | undefined {
  const certificate = new X509Certificate(certPem)
  const key = readPublicKey(certificate)
  return key && describeKey(kid ?? computeFingerprint(certificate), key)
}
