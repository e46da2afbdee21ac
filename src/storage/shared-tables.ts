// The tables that belong to the network, so that all of its controllers have the same rows, and the tables that belong to one file.
//
// The rows of shared tables change by commits only, and each commit holds their images. A table that is in neither list fails
// test/contract/shared-tables.test.ts: its author decides.
import { compiledResources } from '../definitions/model/index.ts'

/** The tables of resources with those of their sets, and the tables without a resource. */
export const SHARED_TABLES: readonly string[] = [
  ...new Set(
    compiledResources.flatMap(({ definition, sets }) => [definition.table, ...sets.map(({ table }) => table)]),
  ),
  'absent_routers',
  'api_session_revocations',
  'audit_records',
  'controller_list',
  'ended_sessions',
  'machine_states',
  'model_changes',
  'revocations',
  'root_receipts',
  'shared_settings',
]

/**
 * The tables whose rows are also written to files next to the database. The rows must reach the disk first, because a new file may replace
 * the only key that decrypts older rows.
 */
export const TABLES_THAT_FILES_FOLLOW: ReadonlySet<string> = new Set(['shared_files'])

/** Table → the reason for which commits do not hold its rows. */
export const LOCAL_TABLES: Readonly<Record<string, string>> = {
  commit_position: 'states up to which commit the rows of this file are, and moves with each',
  migrations: 'states when this file was migrated, and by which version of the program',
}
