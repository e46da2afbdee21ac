// The schemas that administrators bring for their config types: compiled once, bounded, and never fetched from elsewhere.
import type { Ajv, ValidateFunction } from 'ajv'
import { invalid } from '../errors.ts'
import { describe, schemaCompiler } from './validate.ts'

const LARGEST_SCHEMA = 64 * 1024
const MOST_COMPILED = 200

export class ConfigSchemas {
  readonly #compiled = new Map<string, ValidateFunction>()

  /** @throws COULD_NOT_VALIDATE of the field `schema` where it is no schema, or not one for objects */
  assertUsable(schema: Readonly<Record<string, unknown>>): void {
    const text = JSON.stringify(schema)
    if (text.length > LARGEST_SCHEMA) throw invalid('schema', `must not be larger than ${LARGEST_SCHEMA} bytes`)
    if (Object.keys(schema).length > 0 && schema.type !== 'object') {
      throw invalid('schema', 'must have the type "object" at its root', schema.type)
    }
    try {
      this.#compile(text)
    } catch (error) {
      throw invalid('schema', `is not a valid JSON Schema: ${(error as Error).message}`)
    }
  }

  /** @throws COULD_NOT_VALIDATE of the first member of `data` that does not fit, `(root)` for the whole */
  assertMatches(schemaText: string, data: unknown): void {
    const check = this.#compiled.get(schemaText) ?? this.#compile(schemaText)
    if (check(data)) return
    const { field, reason, value } = describe(check.errors?.[0])
    throw invalid(field || '(root)', reason, value)
  }

  #compile(schemaText: string): ValidateFunction {
    // A compiler each: a schema's own $id must not meet that of another.
    const ajv: Ajv = schemaCompiler()
    const check = ajv.compile(JSON.parse(schemaText) as object)
    if (this.#compiled.size >= MOST_COMPILED) this.#compiled.delete(this.#compiled.keys().next().value ?? '')
    this.#compiled.set(schemaText, check)
    return check
  }
}
