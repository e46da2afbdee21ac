// Validates JSON against schemas, and describes problems: which member, and why.
import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv'
import { parseTime } from '../../foundation/clock.ts'
import { type ControllerError, errors } from '../../foundation/errors.ts'
import { isUuid } from '../../foundation/ids.ts'
import { suggestNearest } from '../../foundation/nearest.ts'
import type { JsonSchema } from './json-schema.ts'

/** A validation failure: the path of the member, the end of a sentence about it, and its value. */
export interface Problem {
  readonly field: string
  readonly reason: string
  readonly value: unknown
  /** The member has the wrong JSON type: OpenZiti clients know this as a body that cannot be parsed. */
  readonly isWrongType: boolean
}

/** Creates a schema compiler with the formats that definitions use. */
export function createSchemaCompiler(): Ajv {
  // Errors carry the value of the failing member only in verbose mode; definitions add keywords of their own (`x-…`).
  // A schema is compiled while a request waits for it: to compile the meta-schema, and to optimize the code, took most of that time.
  const speed = { validateSchema: false, code: { optimize: false } }
  const ajv = new Ajv({ verbose: true, strict: false, validateFormats: true, ownProperties: true, ...speed })
  ajv.addFormat('date-time', (text: string) => parseTime(text) !== undefined)
  ajv.addFormat('uuid', isUuid)
  ajv.addFormat('byte', isBase64)
  // An annotation: a blank URL stands for none, and behaviors check the others.
  ajv.addFormat('url', true)
  ajv.addFormat('uri', (text: string) => URL.canParse(text))
  return ajv
}

const MAX_SUGGESTED_LENGTH = 100

const compiler = createSchemaCompiler()
// Compiled at first use, because commands load all schemas and validate few bodies. A schema never changes.
const validators = new WeakMap<JsonSchema, ValidateFunction>()

/** Returns the first problem of `value`, or undefined. A schema is compiled at its first use. */
export function findFirstProblem(schema: JsonSchema, value: unknown): Problem | undefined {
  let check = validators.get(schema)
  if (!check) {
    check = compiler.compile(schema)
    validators.set(schema, check)
  }
  if (check(value)) return undefined
  return describeProblem(check.errors?.[0])
}

/** Converts a problem to the public error; the values of members in `secrets` are not part of it. */
export function toProblemError(problem: Problem, secrets: ReadonlySet<string> = new Set()): ControllerError {
  const { field, reason } = problem
  const cause = { field, reason, value: secrets.has(field) ? '' : problem.value }
  return problem.isWrongType ? errors.COULD_NOT_PARSE_BODY(cause) : errors.COULD_NOT_VALIDATE(cause)
}

/** Describes one failed keyword as the end of a sentence that begins with the member. */
export function describeProblem(error: ErrorObject | undefined): Problem {
  if (!error) return { field: '', reason: 'is not valid', value: undefined, isWrongType: false }
  const path = toMemberPath(error.instancePath)
  const params = error.params as Record<string, unknown>
  const at = (field: string, reason: string, isWrongType = false): Problem => ({
    field,
    reason,
    value: error.data,
    isWrongType,
  })
  switch (error.keyword) {
    case 'required': {
      const extra = findUnknownMember(error)
      if (extra !== undefined) return describeUnknownMember(error, path, extra, toAlsoMissing(params))
      return describeMissing(error)
    }
    case 'additionalProperties':
      return describeUnknownMember(error, path, String(params.additionalProperty))
    case 'type':
      return at(path, `must be ${toTypePhrase(params.type)}`, true)
    case 'enum': {
      const choices = (params.allowedValues as unknown[]).filter((value) => value !== null).map(String)
      const suggestion = typeof error.data === 'string' ? suggestNearest(error.data, choices) : ''
      return at(path, `must be one of ${choices.join(', ')}${suggestion}`)
    }
    case 'minLength':
      return at(path, params.limit === 1 ? 'must not be empty' : `must be at least ${params.limit} characters long`)
    case 'maxLength':
      return at(path, `must be at most ${params.limit} characters long`)
    case 'minimum':
      return at(path, `must not be less than ${params.limit}`)
    case 'maximum':
      return at(path, `must not be greater than ${params.limit}`)
    case 'minItems':
      return at(path, `must have at least ${params.limit} ${params.limit === 1 ? 'entry' : 'entries'}`)
    case 'maxItems':
      return at(path, `must have at most ${params.limit} entries`)
    case 'uniqueItems':
      return at(path, 'must not name anything twice')
    case 'format':
      return at(path, `must be a valid ${params.format}`)
    case 'pattern':
      return at(path, `must match ${params.pattern}`)
    default:
      return at(path, `breaks the rule "${error.keyword}"`)
  }
}

/** Describes failed keywords, one for each member, without the first problem. Of alternatives, the first one that failed counts. */
export function describeProblems(failures: readonly ErrorObject[], first: Problem): Problem[] {
  const fields = new Set([first.field])
  const alternatives = new Set<string>()
  return failures.flatMap((error) => {
    const [, alternative] = /^(.*?\/(?:anyOf|oneOf))(?:\/|$)/.exec(error.schemaPath) ?? []
    const place = alternative === undefined ? undefined : `${error.instancePath} ${alternative}`
    // A condition that fails is reported by the failure of its consequence.
    if (error.keyword === 'if' || (place !== undefined && alternatives.has(place)) || isNamedByUnknown(error)) return []
    if (place !== undefined) alternatives.add(place)
    const problem = error.keyword === 'required' ? describeMissing(error) : describeProblem(error)
    if (fields.has(problem.field) || first.reason.endsWith(toAlsoMissing(error.params))) return []
    fields.add(problem.field)
    return [problem]
  })
}

/** Whether an unknown member of the object resembles the one that is missing: it is a problem by itself. */
function isNamedByUnknown({ keyword, params, data, parentSchema }: ErrorObject): boolean {
  if (keyword !== 'required' || parentSchema?.additionalProperties !== false) return false
  const missing = String((params as { missingProperty?: unknown }).missingProperty)
  const unknown = Object.keys(data as object).filter((name) => !Object.hasOwn(parentSchema.properties ?? {}, name))
  return unknown.some((name) => name.length <= MAX_SUGGESTED_LENGTH && suggestNearest(name, [missing]) !== '')
}

/** The end of a sentence about an unknown member that resembles none. */
function toAlsoMissing({ missingProperty }: Readonly<Record<string, unknown>>): string {
  return `, and ${missingProperty} is required`
}

function describeMissing({ instancePath, params }: ErrorObject): Problem {
  const path = toMemberPath(instancePath)
  const missing = String((params as { missingProperty?: unknown }).missingProperty)
  return { field: path ? `${path}.${missing}` : missing, reason: 'is required', value: undefined, isWrongType: false }
}

/**
 * A member that the schema of its object excludes. A required member that is misspelt is missing and unknown at once, and the
 * compiler checks first whether it is missing.
 */
function findUnknownMember({ data, parentSchema }: ErrorObject): string | undefined {
  const { properties = {}, patternProperties, additionalProperties } = parentSchema ?? {}
  // Patterns may take long, and this is not limited in time.
  if (additionalProperties !== false || patternProperties) return undefined
  return Object.keys(data as object).find((name) => !Object.hasOwn(properties, name))
}

/** @param otherwise the end of the sentence if no member that the object lacks resembles this one */
function describeUnknownMember(
  { data, parentSchema }: ErrorObject,
  path: string,
  name: string,
  otherwise = '',
): Problem {
  const absent = Object.keys(parentSchema?.properties ?? {}).filter((known) => !Object.hasOwn(data as object, known))
  // The time to compare names grows with their length.
  const suggestion = name.length <= MAX_SUGGESTED_LENGTH ? suggestNearest(name, absent) : ''
  return {
    field: path ? `${path}.${name}` : name,
    reason: `is not known here${suggestion || otherwise}`,
    value: (data as Readonly<Record<string, unknown>>)[name],
    isWrongType: false,
  }
}

/** RFC 4648 §4, with its padding. */
function isBase64(text: string): boolean {
  return text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text)
}

/** Converts a JSON pointer to a dotted path. */
function toMemberPath(pointer: string): string {
  return pointer
    .slice(1)
    .split('/')
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
    .join('.')
}

function toTypePhrase(type: unknown): string {
  const names = [type].flat().map(String)
  const article = names[0]?.match(/^[aeiou]/) ? 'an' : 'a'
  return `${article} ${names.join(' or ')}`
}
