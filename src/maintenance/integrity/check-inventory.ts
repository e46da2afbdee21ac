// Checks that the inventory of certificates matches the records that hold them.

import { getResource } from '../../definitions/resources/index.ts'
import { computeFingerprint } from '../../pki/certificates.ts'
import { parsePemBlocks } from '../../pki/pem.ts'
import type { SqliteDatabase } from '../../storage/sqlite/connection.ts'
import { certificateSources } from '../certificates/inventory.ts'
import type { Defect } from './defects.ts'

interface HeldCertificate {
  readonly id: string
  readonly pem: string
  /** Of its entry; null if it has none. */
  readonly fingerprint: string | null
}

export function* checkInventory(connection: SqliteDatabase): Generator<Defect> {
  for (const [plural, { kind, pemField }] of certificateSources) {
    const { table, name, subtypeOf } = getResource(plural)
    // The records of a subtype are in the table of another resource, which is a source of its own.
    if (subtypeOf) continue
    const noun = name.replaceAll('-', ' ')
    const repair = (id: string) => ({ kind: 'renew-inventory', resource: plural, id }) as const
    const entries = `certificates c where c.kind = '${kind}'`
    const sources = connection
      .prepare(
        `select r.id, r."${pemField}" as pem,
          (select c.fingerprint from ${entries} and c.sourceId = r.id limit 1) as fingerprint
        from "${table}" r where r."${pemField}" is not null`,
      )
      .iterate() as Iterable<HeldCertificate>
    for (const { id, pem, fingerprint } of sources) {
      const [block] = parsePemBlocks(pem)
      const expected = block ? computeFingerprint({ raw: block.bytes }) : null
      if (expected === fingerprint) continue
      yield { description: `the inventory does not hold the certificate of the ${noun} ${id}`, repair: repair(id) }
    }
    const surplus = connection
      .prepare(
        `select distinct c.sourceId from ${entries}
        and not exists (select 1 from "${table}" r where r.id = c.sourceId and r."${pemField}" is not null)`,
      )
      .pluck()
      .iterate() as Iterable<string>
    for (const id of surplus) {
      yield {
        description: `the inventory holds a certificate that the ${noun} ${id} does not have`,
        repair: repair(id),
      }
    }
  }
}
