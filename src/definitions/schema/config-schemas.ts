// JSON schemas of config types: compiled once, bounded in size and time; references to other documents are not fetched.
import { Ajv, type Options, type ValidateFunction } from 'ajv'
import AjvDraft04 from 'ajv-draft-04'
import addFormats from 'ajv-formats'
import { LRUCache } from 'lru-cache'
import { errors, type FieldCause, invalidError } from '../../foundation/errors.ts'
import { runWithin } from './time-limit.ts'
import { describeProblem, describeProblems, type Problem } from './validate.ts'

const MAX_SCHEMA_BYTES = 64 * 1024
// Measured: a compiler takes 40 KB, and what it makes of a schema 13 bytes for each character.
const MAX_COMPILED_BYTES = 16 * 1024 * 1024
const COMPILER_BYTES = 40 * 1024
const COMPILED_BYTES_PER_CHARACTER = 13
// The largest schema compiles in a fifth of this on a slow machine, a built-in one in a few milliseconds.
const COMPILE_TIMEOUT_MS = 1000
// A megabyte of data validates in a fifth of this. A pattern or a recursion may never terminate.
const VALIDATE_TIMEOUT_MS = 250

const CHECK_FAILURE = 'cannot be checked against the schema of its type'

const options: Options = {
  // Errors carry the value of the failing member only in verbose mode.
  verbose: true,
  // Unknown keywords and formats are annotations.
  strict: false,
  ownProperties: true,
  logger: false,
}

/** The result of a check of data before its transaction. */
export interface CheckedData {
  /** The schema that the data was found to match, as text; null if its type has none. */
  readonly schema: string | null
}

export class ConfigSchemas {
  /** By the text of the schema. */
  readonly #validators = new LRUCache<string, ValidateFunction>({
    maxSize: MAX_COMPILED_BYTES,
    sizeCalculation: (_, text) => COMPILER_BYTES + COMPILED_BYTES_PER_CHARACTER * text.length,
  })

  /** @throws COULD_NOT_VALIDATE for the field `schema` if it is not a usable schema, or not one for objects */
  assertUsable(schema: Readonly<Record<string, unknown>>): void {
    const text = JSON.stringify(schema)
    if (text.length > MAX_SCHEMA_BYTES)
      throw invalidError('schema', `must not be larger than ${MAX_SCHEMA_BYTES} characters`)
    if (Object.keys(schema).length > 0 && schema.type !== 'object') {
      throw invalidError('schema', 'must have the type "object" at its root', schema.type)
    }
    try {
      this.#compile(text)
    } catch (error) {
      throw invalidError('schema', `is not a usable JSON Schema: ${(error as Error).message}`)
    }
  }

  /**
   * @param schemaText the schema as it is stored
   * @throws COULD_NOT_VALIDATE for the members of `data` that do not match, by their paths; `(root)` is the whole
   */
  assertMatches(schemaText: string, data: unknown): void {
    const first = this.findProblem(schemaText, data)
    if (!first) return
    const others = findFurtherProblems(schemaText, data, first)
    throw errors.COULD_NOT_VALIDATE({
      ...toCause(first),
      ...(others.length > 0 ? { others: others.map(toCause) } : {}),
    })
  }

  /**
   * The first member of `data` that does not match, or undefined.
   * @param schemaText the schema as it is stored
   * @param failure the beginning of the error of a check that takes too long
   * @throws COULD_NOT_VALIDATE if the schema is not usable, or the check takes too long
   */
  findProblem(schemaText: string, data: unknown, failure = CHECK_FAILURE): Problem | undefined {
    const check = this.#getValidator(schemaText)
    return validateInTime(check, data, failure) ? undefined : describeProblem(check.errors?.[0])
  }

  /** Compiles a schema, unless that is done already. @throws COULD_NOT_VALIDATE if it is not usable */
  prepare(schemaText: string): void {
    this.#getValidator(schemaText)
  }

  #getValidator(schemaText: string): ValidateFunction {
    try {
      return this.#validators.get(schemaText) ?? this.#compile(schemaText)
    } catch (error) {
      throw invalidError('type', `has a schema that is not usable: ${(error as Error).message}`)
    }
  }

  #compile(schemaText: string): ValidateFunction {
    const schema = JSON.parse(schemaText) as Record<string, unknown>
    const check = runWithin(COMPILE_TIMEOUT_MS, () => compile(schema))
    this.#validators.set(schemaText, check)
    return check
  }
}

/**
 * Compiles a schema of the draft that it names: 4, 6 or 7; without a draft it is read as draft-07. A reference may point into
 * the schema itself or to the draft; any other is refused.
 */
function compile({ $schema, ...schema }: Record<string, unknown>, further: Options = {}): ValidateFunction {
  if ('$async' in schema) throw new Error('it is asynchronous')
  const isDraft04 = typeof $schema === 'string' && $schema.includes('json-schema.org/draft-04/')
  // One compiler a schema, because the $id of two schemas may be equal.
  const ajv = isDraft04
    ? (new AjvDraft04.default({ ...options, ...further }) as unknown as Ajv)
    : new Ajv({ ...options, ...further })
  addFormats.default(ajv)
  // Compilers of later drafts reject `id`, the draft-04 name of $id.
  if (!isDraft04 && typeof schema.id === 'string') delete schema.id
  return ajv.compile(schema)
}

/** Data that is larger could have more mistakes than memory. */
const MAX_LISTED_BYTES = 64 * 1024
const MAX_PROBLEMS = 20

/** The problems of data besides the first one, each of another member; the compiled schema for it is not cached. */
function findFurtherProblems(schemaText: string, data: unknown, first: Problem): Problem[] {
  if (JSON.stringify(data).length > MAX_LISTED_BYTES) return []
  try {
    const schema = JSON.parse(schemaText) as Record<string, unknown>
    const check = runWithin(COMPILE_TIMEOUT_MS, () => compile(schema, { allErrors: true }))
    runWithin(VALIDATE_TIMEOUT_MS, () => check(data))
    return describeProblems(check.errors ?? [], first).slice(0, MAX_PROBLEMS - 1)
  } catch {
    // All mistakes may take longer than the first one.
    return []
  }
}

function toCause({ field, reason, value }: Problem): FieldCause {
  return { field: field || '(root)', reason, value }
}

function validateInTime(check: ValidateFunction, data: unknown, failure: string): boolean {
  try {
    return runWithin(VALIDATE_TIMEOUT_MS, () => check(data))
  } catch (error) {
    throw invalidError('data', `${failure}: ${(error as Error).message}`)
  }
}
