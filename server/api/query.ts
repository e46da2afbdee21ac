// Query strings: declared parameters, checked and turned into values; all others are skipped.
import { unescape as decodePercents } from 'node:querystring'
import type { JsonSchema } from '../../src/definitions/schema/json-schema.ts'
import { findFirstProblem } from '../../src/definitions/schema/validate.ts'
import { errors, invalidError } from '../../src/foundation/errors.ts'
import type { ListParameters } from '../../src/storage/lists/list-plan.ts'
import type { QueryParameter } from './operation.ts'

/** The parameters of a request by name; a name that is repeated has all its values. */
type SentParameters = ReadonlyMap<string, string | readonly string[]>

const NO_PARAMETERS: SentParameters = new Map()

/**
 * Returns the parameters in the query of a URL. Of `node:querystring`, only the decoding is used: its objects have members that
 * clients name, and the engine takes four times as long to build one as a map.
 */
export function parseQueryOf(url: string): SentParameters {
  const begin = url.indexOf('?')
  if (begin < 0) return NO_PARAMETERS
  const parameters = new Map<string, string | string[]>()
  for (const part of url.slice(begin + 1).split('&')) {
    if (part === '') continue
    const end = part.indexOf('=')
    const name = decode(end < 0 ? part : part.slice(0, end))
    const value = end < 0 ? '' : decode(part.slice(end + 1))
    const earlier = parameters.get(name)
    if (earlier === undefined) parameters.set(name, value)
    else if (typeof earlier === 'string') parameters.set(name, [earlier, value])
    else earlier.push(value)
  }
  return parameters
}

const ENCODED = /[%+]/

function decode(text: string): string {
  return ENCODED.test(text) ? decodePercents(text.replaceAll('+', ' ')) : text
}

const integer: JsonSchema = { type: 'integer' }
const text: JsonSchema = { type: 'string' }

/** The parameters of every list. */
export const listQuery = {
  limit: { schema: { ...integer, description: 'How many records; −1 is all of them.' } },
  offset: { schema: { ...integer, description: 'How many matching records to leave out first.' } },
  filter: { schema: { ...text, description: 'A query, such as: name contains "web" sort by name.' } },
  sort: { schema: { ...text, description: 'What may follow "sort by" in a filter.' } },
} as const satisfies Record<string, QueryParameter>

/** Of lists of records with role attributes. */
export const roleQuery = {
  roleFilter: { schema: { ...text, description: 'A role: #attribute, or @id.' }, isMultiple: true },
  roleSemantic: { schema: { ...text, description: 'AllOf, as without it, or AnyOf.' } },
} as const satisfies Record<string, QueryParameter>

/** The values of the declared parameters; of a repeated single one the last counts, unless it is refused. @throws COULD_NOT_VALIDATE */
export function readQuery(
  declared: Readonly<Record<string, QueryParameter>>,
  sent: SentParameters,
): Record<string, unknown> {
  const values: Record<string, unknown> = {}
  for (const name in declared) {
    const parameter = declared[name] as QueryParameter
    const value = sent.get(name)
    if (value === undefined || (value === '' && !parameter.isRequired)) {
      if (parameter.isRequired) throw invalidError(name, 'is required')
      continue
    }
    const all = typeof value === 'string' ? [value] : value
    if (parameter.isOnce && all.length > 1) throw repeatedError(name)
    const parsed = all.map((one) => readValue(name, parameter, one))
    values[name] = parameter.isMultiple ? parsed : parsed.at(-1)
  }
  return values
}

export const repeatedError = (name: string) => invalidError(name, 'must be given once')

function readValue(name: string, { schema, refuse }: QueryParameter, text: string): unknown {
  const value = schema.type === 'integer' ? toInteger(text) : schema.type === 'boolean' ? toBoolean(text) : text
  const problem = findFirstProblem(schema, value)
  if (problem) throw refuse?.() ?? errors.COULD_NOT_VALIDATE({ field: name, reason: problem.reason, value: text })
  return value
}

function toInteger(value: string): number | string {
  return /^[+-]?\d{1,15}$/.test(value) ? Number(value) : value
}

function toBoolean(value: string): boolean | string {
  if (value === 'true') return true
  return value === 'false' ? false : value
}

/** The parameters of a list as their schemas have left them. */
type SentListParameters = Partial<Omit<ListParameters, 'roleSemantic'>> & { readonly roleSemantic?: string }

/** The parameters of a list, from an operation's query. @throws COULD_NOT_VALIDATE for roles that are none */
export function listParameters(query: Readonly<Record<string, unknown>>): ListParameters {
  const { filter, sort, limit, offset, roleFilter = [], roleSemantic } = query as SentListParameters
  const bare = roleFilter.find((role) => !role.startsWith('#') && !role.startsWith('@'))
  if (bare !== undefined) throw invalidError('roleFilter', 'must begin with # (an attribute) or @ (an id)', bare)
  return { filter, sort, limit, offset, roleFilter, roleSemantic: roleSemantic ? readSemantic(roleSemantic) : 'AllOf' }
}

/** Clients write the word in any case, and know the error by the field `semantic`. */
function readSemantic(value: string): 'AllOf' | 'AnyOf' {
  const semantic = (['AllOf', 'AnyOf'] as const).find((word) => word.toLowerCase() === value.toLowerCase())
  if (!semantic) throw invalidError('semantic', 'must be AllOf or AnyOf', value)
  return semantic
}
