// Rejects values without a field, so that a misspelt field in the code is an error, and no value is lost.
import { getCompiledResource } from '../../definitions/model/index.ts'
import type { AnyResource } from '../../definitions/resources/define.ts'
import { StoreMisuseError } from '../store.ts'

type AnyValues = Readonly<Record<string, unknown>>

/** Checks that every member of a record, or of values for it, is a field. @throws StoreMisuseError if one is not */
export function requireDeclaredFields({ plural }: AnyResource, values: AnyValues): void {
  const undeclared = getCompiledResource(plural).findUndeclared(values)
  if (undeclared === undefined) return
  throw new StoreMisuseError(`${plural.replaceAll('-', ' ')} have no field "${undeclared}"`)
}

/** The values that were sent for a record, without the definition's `inputs`, which are not stored as they are. */
export function omitInputs({ inputs }: AnyResource, values: AnyValues): AnyValues {
  return Object.fromEntries(Object.entries(values).filter(([name]) => !Object.hasOwn(inputs, name)))
}
