// Keeps the inventory of certificates up to date, in the transactions that change the records that hold them.
//
// The inventory is a table of its own, because a union of the tables that hold certificates could not be filtered, sorted
// and paged by one index.
import { X509Certificate } from 'node:crypto'
import { authenticators } from '../../definitions/resources/authenticators.ts'
import { cas } from '../../definitions/resources/cas.ts'
import { type CertificateKind, certificates } from '../../definitions/resources/certificates.ts'
import type { AnyResource, Entity } from '../../definitions/resources/define.ts'
import { edgeRouters } from '../../definitions/resources/edge-routers.ts'
import { externalJwtSigners } from '../../definitions/resources/external-jwt-signers.ts'
import { identities } from '../../definitions/resources/identities.ts'
import { routers } from '../../definitions/resources/routers.ts'
import {
  computeFingerprint,
  type EncodedCertificate,
  readFacts,
  readNotAfter,
  readNotBefore,
} from '../../pki/certificates.ts'
import { formatName } from '../../pki/names.ts'
import { parsePemBlocks } from '../../pki/pem.ts'
import { type EntityStore, find, newEntity } from '../../storage/entities/entities.ts'
import type { AnyChange } from '../../storage/transactions/changes.ts'
import type { WriteContext } from '../../storage/transactions/context.ts'
import { isOneOf } from '../../storage/untyped.ts'

/** The place of a certificate in the records of a resource. */
interface CertificateSource {
  readonly kind: CertificateKind
  /** The field with the certificate as PEM; of several, the first. */
  readonly pemField: string
  /** The field with the id of the record that holds the certificate. */
  readonly holderField: string
  /** The plural of the resource of that record. */
  readonly holders: string
}

/** By resource. A resource whose records have certificates has an entry here, and nothing else. */
export const certificateSources: ReadonlyMap<string, CertificateSource> = new Map([
  [
    authenticators.plural,
    { kind: 'identity', pemField: 'certPem', holderField: 'identityId', holders: identities.plural },
  ],
  [
    externalJwtSigners.plural,
    { kind: 'signer', pemField: 'certPem', holderField: 'id', holders: externalJwtSigners.plural },
  ],
  [routers.plural, { kind: 'router', pemField: 'certPem', holderField: 'id', holders: routers.plural }],
  [cas.plural, { kind: 'authority', pemField: 'certPem', holderField: 'id', holders: cas.plural }],
  [edgeRouters.plural, { kind: 'router', pemField: 'certPem', holderField: 'id', holders: routers.plural }],
])

/** The plural of the resource that holds certificates of a kind; undefined for those of this controller. */
export function findHolderResource(kind: string): string | undefined {
  return [...certificateSources.values()].find((source) => source.kind === kind)?.holders
}

/** The inventory's fields that follow from a certificate itself. */
export function toCertificateEntry(
  certificate: EncodedCertificate,
): Pick<Entity<typeof certificates>, 'subject' | 'fingerprint' | 'notBefore' | 'notAfter'> {
  const fingerprint = computeFingerprint(certificate)
  try {
    const { subject, notBefore, notAfter } = readFacts(certificate)
    return { subject: formatName(subject), fingerprint, notBefore, notAfter }
  } catch {
    // An operator's authority may have written what RFC 5280 forbids and OpenSSL reads.
    const parsed = new X509Certificate(certificate.raw)
    const subject = parsed.subject?.split('\n').reverse().join(',') ?? ''
    return { subject, fingerprint, notBefore: readNotBefore(parsed), notAfter: readNotAfter(parsed) }
  }
}

/** Changes the inventory as these changes of a transaction require. */
export async function updateInventory(
  entities: EntityStore,
  tx: WriteContext,
  changes: readonly AnyChange[],
): Promise<void> {
  const outdatedIds: string[] = []
  const added: Partial<Entity<typeof certificates>>[] = []
  for (const { resource, id, before, after } of changes) {
    const source = certificateSources.get(resource)
    if (!source) continue
    const [previousPem, nextPem] = [before?.[source.pemField], after?.[source.pemField]]
    if (previousPem === nextPem) continue
    if (previousPem) outdatedIds.push(id)
    const [block] = typeof nextPem === 'string' ? parsePemBlocks(nextPem) : []
    if (!block) continue
    const holderId = after?.[source.holderField] as string
    added.push({ ...toCertificateEntry({ raw: block.bytes }), kind: source.kind, holderId, sourceId: id })
  }
  if (outdatedIds.length > 0) await removeEntries(entities, tx, outdatedIds)
  for (const values of added) await entities.insert(tx, certificates, newEntity(tx, certificates, values))
}

/** Replaces what the inventory says of the certificate of a record by what the record holds. */
export async function renewInventoryEntry(
  entities: EntityStore,
  tx: WriteContext,
  resource: AnyResource,
  id: string,
): Promise<void> {
  await removeEntries(entities, tx, [id])
  const after = await find(tx, resource, id)
  const change = { operation: 'update', audit: 'none', resource: resource.plural, id, at: tx.clock.now() } as const
  if (after) await updateInventory(entities, tx, [{ ...change, after }])
}

async function removeEntries(entities: EntityStore, tx: WriteContext, sourceIds: readonly string[]): Promise<void> {
  const rows = await tx.db
    .selectFrom('certificates')
    .select('id')
    .where(isOneOf(tx.db, 'sourceId', sourceIds))
    .execute()
  const ids = rows.map(({ id }) => id)
  await entities.removeAllIn(tx, certificates, ids)
}
