// The schemas that administrators bring for their config types: compiled once, bounded in size and time, never fetched.
import { Ajv, type Options, type ValidateFunction } from 'ajv'
import AjvDraft04 from 'ajv-draft-04'
import addFormats from 'ajv-formats'
import { invalid } from '../errors.ts'
import { within } from './time-limit.ts'
import { describe } from './validate.ts'

const LARGEST_SCHEMA = 64 * 1024
const MOST_COMPILED = 200
// A schema of the largest size compiles in a fifth of this on a slow machine; built-in ones in a few milliseconds.
const COMPILE_MILLISECONDS = 1000
// Data of a megabyte is checked in a fifth of this. A pattern can be written that never ends, and so can a recursion.
const CHECK_MILLISECONDS = 250

const options: Options = {
  // The value of a failing member comes along only in verbose mode.
  verbose: true,
  // Keywords and formats that nobody knows are notes.
  strict: false,
  ownProperties: true,
  logger: false,
}

export class ConfigSchemas {
  /** By the schema's text, the longest unused first. */
  readonly #compiled = new Map<string, ValidateFunction>()

  /** @throws COULD_NOT_VALIDATE of the field `schema` where it is no schema, or not one for objects */
  assertUsable(schema: Readonly<Record<string, unknown>>): void {
    const text = JSON.stringify(schema)
    if (text.length > LARGEST_SCHEMA) throw invalid('schema', `must not be larger than ${LARGEST_SCHEMA} characters`)
    if (Object.keys(schema).length > 0 && schema.type !== 'object') {
      throw invalid('schema', 'must have the type "object" at its root', schema.type)
    }
    try {
      this.#compile(text)
    } catch (error) {
      throw invalid('schema', `is not a usable JSON Schema: ${(error as Error).message}`)
    }
  }

  /**
   * @param schemaText the schema as it is stored
   * @throws COULD_NOT_VALIDATE of the first member of `data` that does not fit, by its path; `(root)` is the whole
   */
  assertMatches(schemaText: string, data: unknown): void {
    const check = this.#known(schemaText)
    if (fits(check, data)) return
    const { field, reason, value } = describe(check.errors?.[0])
    throw invalid(field || '(root)', reason, value)
  }

  #known(schemaText: string): ValidateFunction {
    const known = this.#compiled.get(schemaText)
    if (known) {
      this.#compiled.delete(schemaText)
      this.#compiled.set(schemaText, known)
      return known
    }
    try {
      return this.#compile(schemaText)
    } catch (error) {
      throw invalid('type', `has a schema that is not usable: ${(error as Error).message}`)
    }
  }

  #compile(schemaText: string): ValidateFunction {
    const schema = JSON.parse(schemaText) as Record<string, unknown>
    const check = within(COMPILE_MILLISECONDS, () => compile(schema))
    if (this.#compiled.size >= MOST_COMPILED) this.#compiled.delete(this.#compiled.keys().next().value ?? '')
    this.#compiled.set(schemaText, check)
    return check
  }
}

/**
 * Compiles a schema of the draft that it names: 4, 6 or 7; one that names none of them is read as draft-07. References lead
 * into the schema itself, or to the draft; all others are refused.
 */
function compile({ $schema, ...schema }: Record<string, unknown>): ValidateFunction {
  if ('$async' in schema) throw new Error('it is asynchronous')
  const isDraft04 = typeof $schema === 'string' && $schema.includes('json-schema.org/draft-04/')
  // A compiler each: a schema's own $id must not meet that of another.
  const ajv = isDraft04 ? (new AjvDraft04.default(options) as unknown as Ajv) : new Ajv(options)
  addFormats.default(ajv)
  // The older word for $id says nothing here, and a compiler of a later draft trips over it.
  if (!isDraft04 && typeof schema.id === 'string') delete schema.id
  return ajv.compile(schema)
}

function fits(check: ValidateFunction, data: unknown): boolean {
  try {
    return within(CHECK_MILLISECONDS, () => check(data))
  } catch (error) {
    const reason = `cannot be checked against the schema of its type: ${(error as Error).message}`
    throw invalid('data', reason)
  }
}
