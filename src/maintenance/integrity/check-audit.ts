// Checks that the audit is one unbroken chain.
import { KeyFileError, loadKey } from '../../pki/files.ts'
import { type ChainedRecord, ChainVerifier } from '../../storage/audit/audit-chain.ts'
import { AUDIT_KEY_BYTES, AuditSealer } from '../../storage/audit/audit-seal.ts'
import type { SqliteDatabase } from '../../storage/sqlite/connection.ts'
import type { CheckedFiles, Defect } from './defects.ts'

/** Verifies the audit. Without its key it cannot be verified, which is a defect, too. */
export function* checkAudit(
  connection: SqliteDatabase,
  { auditKey }: Pick<CheckedFiles, 'auditKey'>,
): Generator<Defect> {
  try {
    const verifier = new ChainVerifier(new AuditSealer(loadKey(auditKey, AUDIT_KEY_BYTES)))
    const rows = connection.prepare('select * from audit_records order by n').iterate() as Iterable<ChainedRecord>
    for (const record of rows) verifier.add(record)
    yield* verifier.report().findings.map((description) => ({ description }))
  } catch (error) {
    if (!(error instanceof KeyFileError)) throw error
    yield { description: `the audit cannot be verified: ${error.message}` }
  }
}
