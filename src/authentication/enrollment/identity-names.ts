// The names of identities that enroll by themselves.

import { hasVisibleCharacter } from '../../definitions/schema/fields.ts'
import type { WriteContext } from '../../storage/context.ts'
import { prepareQuery } from '../../storage/prepared-queries.ts'

/** What the symbols of a name format stand for. */
export interface NameParts {
  readonly caName: string
  readonly caId: string
  /** Of the certificate; undefined if it has none. */
  readonly commonName: string | undefined
  /** Undefined if the client asks for none. */
  readonly requestedName: string | undefined
  readonly identityId: string
}

const SYMBOL = /\[(caName|caId|commonName|requestedName|identityId)\]/g

// Each round looks up one name, and the suffixes accumulate.
const MAX_SUFFIXES = 10
const SUFFIX_DIGITS = 6

/** Replaces the symbols of a name format. A symbol in a replacement is not replaced again. */
export function formatIdentityName(format: string, parts: NameParts): string {
  const { identityId, commonName = '', requestedName = '' } = parts
  const values = { ...parts, commonName, requestedName: requestedName.trim() === '' ? identityId : requestedName }
  const name = format.replace(SYMBOL, (_, symbol: keyof typeof values) => values[symbol])
  return hasVisibleCharacter(name) ? name : identityId
}

const findName = prepareQuery((db, name: string) => db.selectFrom('identities').select('n').where('name', '=', name))

/**
 * Returns a name that no identity has: `name`, `name000001`, `name000001000002` …, as clients know it. After some rounds the
 * id of the identity follows instead, so that thousands of certificates with one common name enroll at the same cost.
 */
export async function findFreeName(tx: WriteContext, name: string, identityId: string): Promise<string> {
  let candidate = name
  for (let round = 1; round <= MAX_SUFFIXES; round++) {
    if ((await findName(tx.db, candidate)).length === 0) return candidate
    candidate += String(round).padStart(SUFFIX_DIGITS, '0')
  }
  return `${name}-${identityId}`
}
