// Request bodies: from the fields of a definition to a schema, and from a body to values that can be stored.
import { type ControllerError, errors, invalidError } from '../errors.ts'
import { type AnyField, type FieldOptions, type Fields, toMemberName } from './fields.ts'
import { compact, type JsonSchema } from './json-schema.ts'
import { withSchemaNames } from './member-names.ts'
import { findFirstProblem, type Problem, toProblemError } from './validate.ts'

/** What a body is for: it decides what must be there, and what an absent member means. */
export type Purpose = 'create' | 'replace' | 'patch'

/** A body's shape, made once for each operation that takes one. */
export interface BodyShape {
  readonly purpose: Purpose
  readonly fields: Fields
  readonly schema: JsonSchema
  /** Members that records carry on read: whoever sends a record back is not told that they are unknown. */
  readonly tolerated: ReadonlySet<string>
  readonly secrets: ReadonlySet<string>
}

/** How much a body may differ from its schema: nothing in the words of the documents, some in those of other clients. */
export interface BodyTolerance {
  /** Whether members that the schema does not name are refused with 400, or ignored. */
  readonly unknownMembers: 'refuse' | 'ignore'
  /** Whether a member may be written in another case if none is written exactly. */
  readonly memberCase: 'exact' | 'any'
  /** Whether null is refused with 400 in a member that does not take it, or counts as absent. */
  readonly undeclaredNulls: 'refuse' | 'ignore'
}

/** For bodies that must be what their schema says. */
export const NO_TOLERANCE: BodyTolerance = {
  unknownMembers: 'refuse',
  memberCase: 'exact',
  undeclaredNulls: 'refuse',
}

export function buildBodyShape(purpose: Purpose, fields: Fields, tolerated: Iterable<string> = []): BodyShape {
  const writable = Object.fromEntries(Object.entries(fields).filter(([, field]) => isWritable(field)))
  const secrets = Object.entries(writable).flatMap(([name, field]) =>
    field.options.secret ? [toMemberName(name, field)] : [],
  )
  return {
    purpose,
    fields: writable,
    schema: toObjectSchema(writable, purpose),
    tolerated: new Set(tolerated),
    secrets: new Set(secrets),
  }
}

function isWritable(field: AnyField): boolean {
  return field.options.access !== 'read' && field.options.access !== 'internal'
}

/** Whether a change leaves the field alone, because only a new record sets it. */
function isFixed({ access }: FieldOptions, purpose: Purpose): boolean {
  return access === 'create' && purpose !== 'create'
}

function isRequired(field: AnyField, purpose: Purpose): boolean {
  const { required } = field.options
  return required === 'always' || (purpose !== 'patch' && (required === true || required === purpose))
}

/** Whether null may be sent for a field. */
function acceptsNull({ kind, options }: AnyField, purpose: Purpose): boolean {
  return kind.acceptsNull === true || options.acceptsNull === true || options.acceptsNull === purpose
}

/** The JSON Schema of a body with these fields. */
function toObjectSchema(fields: Fields, purpose: Purpose): JsonSchema {
  const entries = Object.entries(fields)
  const required = entries
    .filter(([, field]) => isRequired(field, purpose))
    .map(([name, field]) => toMemberName(name, field))
  return {
    type: 'object',
    properties: Object.fromEntries(
      entries.map(([name, field]) => [toMemberName(name, field), toValueSchema(field, purpose)]),
    ),
    ...(required.length > 0 ? { required } : {}),
  }
}

function toValueSchema(field: AnyField, purpose: Purpose): JsonSchema {
  const { members, schema } = field.kind
  return {
    ...(members ? toObjectSchema(members, purpose) : compact(schema)),
    ...(acceptsNull(field, purpose) ? { nullable: true } : {}),
    ...notes(field, purpose),
  }
}

/** What a member is beyond its form; documents say it to people, and commands are made from it. */
function notes({ kind, options }: AnyField, purpose: Purpose): JsonSchema {
  const { target, roles, reference } = kind
  return compact({
    description: options.summary,
    // Accepted so that a record can be sent back as it was read, and left alone.
    readOnly: isFixed(options, purpose) || undefined,
    writeOnly: options.secret || undefined,
    // Ids of these records; in roles behind an @.
    'x-refers-to': reference?.choices ? undefined : target,
    'x-roles': roles,
    'x-command-default': options.commandDefault,
  })
}

/**
 * Checks a body and returns its members by field name. Absent members are absent in the result. So are those that are
 * null, because the default then holds; in a patch they have their default, or are absent if they have none.
 * @throws COULD_NOT_PARSE_BODY or COULD_NOT_VALIDATE with the first problem
 */
export function readBody(shape: BodyShape, body: unknown, tolerance: BodyTolerance): Record<string, unknown> {
  assertStorable(body)
  return readObject(shape, body, tolerance, '')
}

/** The same for a body that is an array of such objects; errors name a member as `0.name`. */
export function readBodies(shape: BodyShape, body: unknown, tolerance: BodyTolerance): Record<string, unknown>[] {
  if (!Array.isArray(body)) throw errors.COULD_NOT_PARSE_BODY({ message: 'the body must be a JSON array' })
  assertStorable(body)
  return body.map((entry, at) => readObject(shape, entry, tolerance, `${at}.`))
}

function readObject(shape: BodyShape, sent: unknown, tolerance: BodyTolerance, path: string): Record<string, unknown> {
  const { fields, purpose, schema, secrets } = shape
  const body = tolerance.memberCase === 'any' ? withSchemaNames(schema, sent) : sent
  assertObject(body)
  if (tolerance.unknownMembers === 'refuse') refuseUnknown(schema, body, shape.tolerated, path)
  const known = knownMembers(fields, purpose, body, tolerance)
  const problem = findFirstProblem(schema, known)
  if (problem) throw bodyError(fields, { ...problem, field: path + problem.field }, secrets)
  return fieldValues(fields, purpose, known, path)
}

function bodyError(fields: Fields, problem: Problem, secrets: ReadonlySet<string>): ControllerError {
  const isRule = Object.entries(fields).some(
    ([name, field]) => field.kind.isTypeRule && toMemberName(name, field) === problem.field,
  )
  return toProblemError(isRule ? { ...problem, isWrongType: false } : problem, secrets)
}

// Deeper than any sensible document, and far from what would exhaust the stack of those who walk through one.
const MAX_DEPTH = 64
const LONE_SURROGATE = /\p{Surrogate}/u

/** @throws COULD_NOT_PARSE_BODY for what no field can hold, wherever it stands: excessive depth, U+0000, half surrogate pairs */
function assertStorable(body: unknown): void {
  const waiting: (readonly [value: unknown, depth: number])[] = [[body, 1]]
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    const [value, depth] = next
    if (typeof value === 'string') assertUnicode(value)
    if (typeof value !== 'object' || value === null) continue
    if (depth > MAX_DEPTH)
      throw errors.COULD_NOT_PARSE_BODY({ message: `the body is nested more than ${MAX_DEPTH} levels deep` })
    for (const [name, member] of Object.entries(value)) {
      assertUnicode(name)
      waiting.push([member, depth + 1])
    }
  }
}

function assertUnicode(text: string): void {
  if (text.includes('\0'))
    throw errors.COULD_NOT_PARSE_BODY({ message: 'the body holds the character U+0000, which cannot be stored' })
  if (LONE_SURROGATE.test(text))
    throw errors.COULD_NOT_PARSE_BODY({ message: 'the body holds half a surrogate pair, which is not Unicode text' })
}

/** @throws COULD_NOT_PARSE_BODY */
export function assertObject(body: unknown): asserts body is Record<string, unknown> {
  if (!isRecord(body)) throw errors.COULD_NOT_PARSE_BODY({ message: 'the body must be a JSON object' })
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Refuses members that the schema does not name, at any depth. Maps, whose keys no schema names, take any. */
function refuseUnknown(schema: JsonSchema, value: unknown, tolerated: ReadonlySet<string>, path: string): void {
  const { items, properties } = schema
  if (Array.isArray(value)) {
    if (items) for (const [at, entry] of value.entries()) refuseUnknown(items, entry, tolerated, `${path}${at}.`)
    return
  }
  if (!isRecord(value) || !properties) return
  for (const [name, member] of Object.entries(value)) {
    const ofMember = Object.hasOwn(properties, name) ? properties[name] : undefined
    if (!ofMember && !tolerated.has(name)) throw invalidError(path + name, 'is not known here', member)
    if (ofMember) refuseUnknown(ofMember, member, tolerated, `${path}${name}.`)
  }
}

/** The members that the fields name, without the nulls that count as absent. */
function knownMembers(
  fields: Fields,
  purpose: Purpose,
  body: Record<string, unknown>,
  tolerance: BodyTolerance,
): Record<string, unknown> {
  const known: Record<string, unknown> = {}
  for (const [name, field] of Object.entries(fields)) {
    const member = toMemberName(name, field)
    const value = Object.hasOwn(body, member) ? body[member] : undefined
    const { members } = field.kind
    if (value === undefined || (value === null && isNullAbsent(field, purpose, tolerance))) continue
    known[member] = members && isRecord(value) ? knownMembers(members, purpose, value, tolerance) : value
  }
  return known
}

/** Whether null counts as absent. What must be sent is then missed, which says more than the wrong type. */
function isNullAbsent(field: AnyField, purpose: Purpose, tolerance: BodyTolerance): boolean {
  if (acceptsNull(field, purpose)) return false
  // A record that shows null there can be sent back as it was read.
  if (isFixed(field.options, purpose)) return true
  return isRequired(field, purpose) || tolerance.undeclaredNulls === 'ignore'
}

function fieldValues(
  fields: Fields,
  purpose: Purpose,
  sent: Record<string, unknown>,
  path: string,
): Record<string, unknown> {
  const values: Record<string, unknown> = {}
  for (const [name, field] of Object.entries(fields)) {
    const member = toMemberName(name, field)
    const value = Object.hasOwn(sent, member) ? sent[member] : undefined
    if (value === undefined) continue
    if (value !== null) values[name] = fieldValue(field, purpose, value, path + member)
    // A field that records must be given has no default: null leaves it as it is.
    else if (purpose === 'patch' && !field.options.required) values[name] = getFallback(field)
  }
  return values
}

function fieldValue(field: AnyField, purpose: Purpose, value: unknown, path: string): unknown {
  const { kind } = field
  if (kind.members) return fieldValues(kind.members, purpose, value as Record<string, unknown>, `${path}.`)
  const objection = kind.objection?.(value)
  if (objection) throw invalidError(path, objection.reason, objection.value)
  return kind.normalize ? kind.normalize(value, purpose) : value
}

/** What a field holds that was not sent on create or replace. */
function getFallback(field: AnyField): unknown {
  const { kind, options } = field
  if (options.default !== undefined) return options.default
  if (kind.members) return applyFallbacks(kind.members, {})
  return options.nullable ? null : kind.empty
}

/** `values` completed for all fields: what create and replace mean by an absent member. */
export function applyFallbacks(fields: Fields, values: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const complete: Record<string, unknown> = {}
  for (const [name, field] of Object.entries(fields)) {
    const value = values[name]
    if (value === undefined || value === null) complete[name] = getFallback(field)
    else
      complete[name] = field.kind.members ? applyFallbacks(field.kind.members, value as Record<string, unknown>) : value
  }
  return complete
}

/** What a patch makes of a record: sent members replace, structured ones merge, all others stay the very same value. */
export function applyPatch(
  fields: Fields,
  previous: Readonly<Record<string, unknown>>,
  values: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const next: Record<string, unknown> = { ...previous }
  for (const [name, value] of Object.entries(values)) {
    const members = fields[name]?.kind.members
    next[name] = members
      ? applyPatch(members, previous[name] as Record<string, unknown>, value as Record<string, unknown>)
      : value
  }
  return next
}

/** The error for a body that is missing where one is needed. */
export function bodyRequiredError(): ControllerError {
  return errors.COULD_NOT_VALIDATE({ field: 'body', reason: 'is required' })
}
