// The names of identities that enroll by themselves.

import { hasVisibleCharacter } from '../../definitions/schema/fields.ts'
import { invalidError } from '../../foundation/errors.ts'
import { prepareQuery } from '../../storage/prepared-queries.ts'
import type { WriteContext } from '../../storage/transactions/context.ts'

/** The values for the symbols of a name format. */
export interface NameParts {
  readonly caName: string
  readonly caId: string
  /** Of the certificate; undefined if it has none. */
  readonly commonName: string | undefined
  /** Undefined if the client asks for none. */
  readonly requestedName: string | undefined
  readonly identityId: string
}

/** The greatest length of a text that a client chooses, and no administrator reads before it becomes a name. */
export const MAX_CHOSEN_LENGTH = 200
// With what ends a line, and what changes the direction of text: a name could show as that of another identity.
const CONTROL = /[\p{Control}\u2028-\u202e\u2066-\u2069]/u

const SYMBOL = /\[(caName|caId|commonName|requestedName|identityId)\]/g

// Each round looks up one name, and the suffixes accumulate.
const MAX_SUFFIXES = 10
const SUFFIX_DIGITS = 6

/**
 * Replaces the symbols of a name format. A symbol in a replacement is not replaced again.
 * @throws COULD_NOT_VALIDATE if a text that the client chose is too long, or has control characters, which act on terminals
 */
export function formatIdentityName(format: string, parts: NameParts): string {
  const { identityId, commonName = '', requestedName = '' } = parts
  const values = { ...parts, commonName, requestedName: requestedName.trim() === '' ? identityId : requestedName }
  const name = format.replace(SYMBOL, (_, symbol: keyof typeof values) => {
    if (symbol === 'commonName' || symbol === 'requestedName') requireHarmless(values[symbol])
    return values[symbol]
  })
  return hasVisibleCharacter(name) ? name : identityId
}

function requireHarmless(text: string): void {
  if (text.length > MAX_CHOSEN_LENGTH) throw invalidError('name', `must have at most ${MAX_CHOSEN_LENGTH} characters`)
  if (CONTROL.test(text)) throw invalidError('name', 'must not have control characters')
}

const findName = prepareQuery((db, name: string) => db.selectFrom('identities').select('n').where('name', '=', name))

/**
 * Returns a name that no identity has: `name`, `name000001`, `name000001000002` …, as clients know it. After some rounds the
 * id of the identity follows instead, so that thousands of certificates with one common name enroll at the same cost.
 */
export async function findFreeIdentityName(tx: WriteContext, name: string, identityId: string): Promise<string> {
  let candidate = name
  for (let round = 1; round <= MAX_SUFFIXES; round++) {
    if ((await findName(tx.db, candidate)).length === 0) return candidate
    candidate += String(round).padStart(SUFFIX_DIGITS, '0')
  }
  return `${name}-${identityId}`
}
