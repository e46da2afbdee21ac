// The secrets in the database: every field that is declared as encrypted, of every resource.
import type { Kysely } from 'kysely'
import type { AnyResource } from '../../definitions/resources/define.ts'
import { resources } from '../../definitions/resources/index.ts'
import { KeyFileError } from '../../pki/files.ts'
import type { Database } from '../database.ts'
import type { Context } from '../transactions/context.ts'
import { untyped } from '../untyped.ts'
import type { SecretCipher } from './secret-cipher.ts'

/** How many secrets one transaction re-encrypts. */
const BATCH = 250

interface EncryptedField {
  readonly resource: AnyResource
  readonly field: string
}

const encryptedFields: readonly EncryptedField[] = (resources as readonly AnyResource[]).flatMap((resource) =>
  Object.entries(resource.fields).flatMap(([field, { options }]) => (options.isEncrypted ? [{ resource, field }] : [])),
)

/**
 * Requires that the key file is that of the database, by the first secret of each field.
 * @throws KeyFileError if another key encrypted it
 */
export async function requireSecretsKey(db: Kysely<Database>, cipher: SecretCipher, keyFile: string): Promise<void> {
  for (const encryptedField of encryptedFields) {
    const [row] = await readSecrets(db, encryptedField, 0, 1)
    if (row && !cipher.hasKeyOf(row.ciphertext)) {
      throw new KeyFileError(`${keyFile} is not the key of this database: restore both from the same backup`)
    }
  }
}

/** Encrypts every secret under the current key. Returns how many were encrypted under another key. */
export async function reencryptSecrets(context: Context, cipher: SecretCipher): Promise<number> {
  let count = 0
  for (const encryptedField of encryptedFields) count += await reencryptField(context, cipher, encryptedField)
  return count
}

async function reencryptField(
  context: Context,
  cipher: SecretCipher,
  { resource, field }: EncryptedField,
): Promise<number> {
  let count = 0
  let last = 0
  for (;;) {
    const rows = await readSecrets(context.db, { resource, field }, last, BATCH)
    const outdated = rows.filter(({ ciphertext }) => !cipher.isCurrent(ciphertext))
    const renewed = outdated.map(({ id, ciphertext }) => {
      const place = { resource: resource.plural, id, field }
      return { id, ciphertext, next: cipher.encrypt(cipher.decrypt(ciphertext, place), place) }
    })
    if (renewed.length > 0) {
      await context.write(async (tx) => {
        for (const { id, ciphertext, next } of renewed) {
          const update = untyped(tx.db)
            .updateTable(resource.table)
            .set({ [field]: next })
          await update.where('id', '=', id).where(field, '=', ciphertext).execute()
        }
      })
    }
    count += renewed.length
    if (rows.length < BATCH) return count
    last = rows.at(-1)?.n ?? last
  }
}

interface StoredSecret {
  readonly n: number
  readonly id: string
  readonly ciphertext: string
}

async function readSecrets(
  db: Kysely<Database>,
  { resource, field }: EncryptedField,
  after: number,
  limit: number,
): Promise<StoredSecret[]> {
  const rows = await untyped(db)
    .selectFrom(resource.table)
    .select(['n', 'id', `${field} as ciphertext`])
    .where('n', '>', after)
    .where(field, 'is not', null)
    .orderBy('n')
    .limit(limit)
    .execute()
  return rows as unknown as StoredSecret[]
}
