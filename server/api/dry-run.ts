// Dry runs: a change that every rule judges, in one transaction that is rolled back.
import { errors, invalidError } from '../../src/foundation/errors.ts'
import type { AnyOperation } from './operation.ts'

/** The request header that asks for a dry run: `true` or `false`. */
export const DRY_RUN_HEADER = 'controller-dry-run'

/**
 * Whether a request asks for a dry run. A GET request changes nothing in any case, so the header does not concern it.
 * @throws COULD_NOT_VALIDATE if the header has another value, or the operation has effects that cannot be rolled back
 */
export function isDryRun(header: string | string[] | undefined, { method, canDryRun }: AnyOperation): boolean {
  if (method === 'GET' || header === undefined || header === 'false') return false
  if (header !== 'true') throw invalidError(DRY_RUN_HEADER, 'must be true or false', String(header))
  if (!canDryRun)
    throw errors.COULD_NOT_VALIDATE({ field: DRY_RUN_HEADER, reason: 'is not supported by this operation' })
  return true
}
