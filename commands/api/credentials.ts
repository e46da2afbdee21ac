// Takes the credentials from records that are printed: output ends up in logs, tickets and shared screens.
import type { ApiDescription, OperationDescription } from '../../src/client/api-description.ts'
import type { OutputRecord } from '../terminal/cells.ts'

/** The members of an operation's records that are credentials. */
export function getCredentials({ returns }: OperationDescription, { resources }: ApiDescription): readonly string[] {
  return 'resource' in returns ? (resources[returns.resource]?.credentials ?? []) : []
}

/** The record without these members; the same one if there are none. */
export function omitCredentials(record: OutputRecord, credentials: readonly string[]): OutputRecord {
  if (credentials.length === 0) return record
  return Object.fromEntries(Object.entries(record).filter(([name]) => !credentials.includes(name)))
}
