// Request bodies: from the fields of a definition to a schema, and from a body to values that can be stored.
import { type ControllerError, errors, invalidError } from '../../foundation/errors.ts'
import { type AnyField, type FieldOptions, type Fields, toMemberName } from './fields.ts'
import { compact, type JsonSchema } from './json-schema.ts'
import { withSchemaNames } from './member-names.ts'
import { isRecord, rejectUnknownMembers, reportUnknownMembers } from './unknown-members.ts'
import { findFirstProblem, type Problem, toProblemError } from './validate.ts'

/** The purpose of a body decides which members it must have, and what an absent member means. */
export type BodyPurpose = 'create' | 'replace' | 'patch'

/** The shape of a body; each operation with a body builds its own at boot. */
export interface BodyShape {
  readonly purpose: BodyPurpose
  readonly fields: Fields
  readonly schema: JsonSchema
  /** Members that records have on read: a body may repeat them, so that a client can send a record back as it read it. */
  readonly readOnlyMembers: ReadonlySet<string>
  readonly secrets: ReadonlySet<string>
}

/** How far a body may differ from its schema. The native dialect allows no difference, the dialect `openziti` some. */
export interface BodyTolerance {
  /** Whether members that the schema does not name are refused with 400, or ignored. */
  readonly unknownMembers: 'refuse' | 'ignore'
  /** Receives the paths of the members that were ignored, as far as they are reported. */
  readonly ignoredMembers?: string[]
  /** Whether a member name in another case counts if the body has no exact match. */
  readonly memberCase: 'exact' | 'any'
  /** Whether null in a member that is not nullable is refused with 400, or counts as absent. */
  readonly undeclaredNulls: 'refuse' | 'ignore'
  /** Whether empty text in place of one of several values is refused with 400, or stands for the default. */
  readonly blankChoices: 'refuse' | 'default'
}

/** For bodies that must match their schema exactly. */
export const NO_TOLERANCE: BodyTolerance = {
  unknownMembers: 'refuse',
  memberCase: 'exact',
  undeclaredNulls: 'refuse',
  blankChoices: 'refuse',
}

export function buildBodyShape(
  purpose: BodyPurpose,
  fields: Fields,
  readOnlyMembers: Iterable<string> = [],
): BodyShape {
  const writable = Object.fromEntries(Object.entries(fields).filter(([, field]) => isWritable(field)))
  const secrets = Object.entries(writable).flatMap(([name, field]) =>
    field.options.secret ? [toMemberName(name, field)] : [],
  )
  return {
    purpose,
    fields: writable,
    schema: toObjectSchema(writable, purpose),
    readOnlyMembers: new Set(readOnlyMembers),
    secrets: new Set(secrets),
  }
}

function isWritable(field: AnyField): boolean {
  return field.options.access !== 'read' && field.options.access !== 'internal'
}

/** Whether an update ignores the field, because only a create sets it. */
function isFixed({ access }: FieldOptions, purpose: BodyPurpose): boolean {
  return access === 'create' && purpose !== 'create'
}

function isRequired(field: AnyField, purpose: BodyPurpose): boolean {
  const { required } = field.options
  return required === 'always' || (purpose !== 'patch' && (required === true || required === purpose))
}

/** Whether null may be sent for a field. */
function acceptsNull({ kind, options }: AnyField, purpose: BodyPurpose): boolean {
  return kind.acceptsNull === true || options.acceptsNull === true || options.acceptsNull === purpose
}

/** The JSON Schema of a body with these fields. */
function toObjectSchema(fields: Fields, purpose: BodyPurpose): JsonSchema {
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

function toValueSchema(field: AnyField, purpose: BodyPurpose): JsonSchema {
  const { members, schema } = field.kind
  return {
    ...(members ? toObjectSchema(members, purpose) : compact(schema)),
    ...(acceptsNull(field, purpose) ? withNull(schema) : {}),
    ...describeMember(field, purpose),
  }
}

/** The members that make a schema accept null; an `enum` lists every value, so null is one of them. */
function withNull({ enum: values }: JsonSchema): JsonSchema {
  return { nullable: true, ...(values ? { enum: [...values, null] } : {}) }
}

/** The annotations of a member: documents show them, and commands are generated from them. */
function describeMember({ kind, options }: AnyField, purpose: BodyPurpose): JsonSchema {
  const { target, roles, reference } = kind
  return compact({
    description: options.summary,
    // Accepted and ignored, so that a client can send a record back as it read it.
    readOnly: isFixed(options, purpose) || undefined,
    writeOnly: options.secret || undefined,
    // The resource whose ids the member holds; in roles after an @.
    'x-refers-to': reference?.choices ? undefined : target,
    'x-roles': roles,
    'x-command-default': options.commandDefault,
  })
}

/**
 * Validates a body and returns its members by field name. An absent member is absent in the result. A member that is null
 * is absent too, because its default applies; in a patch it has its default, or is absent if it has none.
 * @param path what stands before the names of members in errors
 * @throws COULD_NOT_PARSE_BODY or COULD_NOT_VALIDATE with the first problem
 */
export function readBody(
  shape: BodyShape,
  body: unknown,
  tolerance: BodyTolerance,
  path = '',
): Record<string, unknown> {
  assertStorable(body)
  return readObject(shape, body, tolerance, path)
}

/** Validates a body that is an array of such objects; errors name a member as `0.name`. */
export function readBodies(shape: BodyShape, body: unknown, tolerance: BodyTolerance): Record<string, unknown>[] {
  if (!Array.isArray(body)) throw errors.COULD_NOT_PARSE_BODY({ message: 'the body must be a JSON array' })
  assertStorable(body)
  return body.map((entry, at) => readObject(shape, entry, tolerance, `${at}.`))
}

function readObject(shape: BodyShape, value: unknown, tolerance: BodyTolerance, path: string): Record<string, unknown> {
  const { fields, purpose, schema, secrets } = shape
  const body = tolerance.memberCase === 'any' ? withSchemaNames(schema, value) : value
  assertObject(body)
  if (tolerance.unknownMembers === 'refuse') rejectUnknownMembers(schema, body, shape.readOnlyMembers, path)
  else if (tolerance.ignoredMembers)
    reportUnknownMembers(schema, body, shape.readOnlyMembers, path, tolerance.ignoredMembers)
  const bodyMembers = pickDeclaredMembers(fields, purpose, body, tolerance)
  const problem = findFirstProblem(schema, bodyMembers)
  if (problem) throw toBodyError(fields, { ...problem, field: path + problem.field }, secrets)
  return toFieldValues(fields, purpose, bodyMembers, path)
}

function toBodyError(fields: Fields, problem: Problem, secrets: ReadonlySet<string>): ControllerError {
  const isRule = Object.entries(fields).some(
    ([name, field]) => field.kind.isTypeRule && toMemberName(name, field) === problem.field,
  )
  return toProblemError(isRule ? { ...problem, isWrongType: false } : problem, secrets)
}

// Deeper than any sensible document, and far below what exhausts the stack of recursive code.
const MAX_DEPTH = 64
const LONE_SURROGATE = /\p{Surrogate}/u

/** @throws COULD_NOT_PARSE_BODY if any part of the body cannot be stored: too deep, U+0000, a lone surrogate */
function assertStorable(body: unknown): void {
  const stack: (readonly [value: unknown, depth: number])[] = [[body, 1]]
  for (let next = stack.pop(); next; next = stack.pop()) {
    const [value, depth] = next
    if (typeof value === 'string') assertUnicode(value)
    if (typeof value !== 'object' || value === null) continue
    if (depth > MAX_DEPTH)
      throw errors.COULD_NOT_PARSE_BODY({ message: `the body is nested more than ${MAX_DEPTH} levels deep` })
    for (const [name, member] of Object.entries(value)) {
      assertUnicode(name)
      stack.push([member, depth + 1])
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

type FieldEntry = readonly [name: string, field: AnyField]

// Fields never change, and every body is read by them several times.
const fieldEntries = new WeakMap<Fields, readonly FieldEntry[]>()

function listFields(fields: Fields): readonly FieldEntry[] {
  let entries = fieldEntries.get(fields)
  if (!entries) {
    entries = Object.entries(fields)
    fieldEntries.set(fields, entries)
  }
  return entries
}

/** Returns the members that the fields declare, without the nulls that count as absent. */
function pickDeclaredMembers(
  fields: Fields,
  purpose: BodyPurpose,
  body: Record<string, unknown>,
  tolerance: BodyTolerance,
): Record<string, unknown> {
  const bodyMembers: Record<string, unknown> = {}
  for (const [name, field] of listFields(fields)) {
    const member = toMemberName(name, field)
    const value = Object.hasOwn(body, member)
      ? toAcceptedValue(field, member, purpose, body[member], tolerance)
      : undefined
    const { members } = field.kind
    if (value === undefined || (value === null && isNullAbsent(field, purpose, tolerance))) continue
    bodyMembers[member] = members && isRecord(value) ? pickDeclaredMembers(members, purpose, value, tolerance) : value
  }
  return bodyMembers
}

/** Returns the value that a member stands for, if that is not the member itself; undefined if it counts as absent. */
function toAcceptedValue(
  { kind, options }: AnyField,
  member: string,
  purpose: BodyPurpose,
  value: unknown,
  tolerance: BodyTolerance,
): unknown {
  if (value === '' && tolerance.blankChoices === 'default' && kind.schema.enum) return options.default ?? value
  // A record shows another one under the name that takes its id. What is sent back as it was read changes nothing.
  if (kind.reference?.as !== member || !isRecord(value)) return value
  if (purpose === 'patch') return undefined
  return purpose === 'replace' ? value.id : value
}

/** Whether null counts as absent. A required member is then reported as missing, which says more than a wrong type. */
function isNullAbsent(field: AnyField, purpose: BodyPurpose, tolerance: BodyTolerance): boolean {
  if (acceptsNull(field, purpose)) return false
  // A client can then send back a record that shows null here.
  if (isFixed(field.options, purpose)) return true
  return isRequired(field, purpose) || tolerance.undeclaredNulls === 'ignore'
}

function toFieldValues(
  fields: Fields,
  purpose: BodyPurpose,
  bodyMembers: Record<string, unknown>,
  path: string,
): Record<string, unknown> {
  const values: Record<string, unknown> = {}
  for (const [name, field] of listFields(fields)) {
    const member = toMemberName(name, field)
    const value = Object.hasOwn(bodyMembers, member) ? bodyMembers[member] : undefined
    if (value === undefined) continue
    if (value !== null) values[name] = toFieldValue(field, purpose, value, path + member)
    // A required field has no default: null leaves it unchanged.
    else if (purpose === 'patch' && !field.options.required) values[name] = getFallback(field)
  }
  return values
}

function toFieldValue(field: AnyField, purpose: BodyPurpose, value: unknown, path: string): unknown {
  const { kind } = field
  if (kind.members) return toFieldValues(kind.members, purpose, value as Record<string, unknown>, `${path}.`)
  const objection = kind.objection?.(value)
  if (objection) throw invalidError(path, objection.reason, objection.value)
  return kind.normalize ? kind.normalize(value, purpose) : value
}

/** The value of a field that a create or replace does not send. */
function getFallback(field: AnyField): unknown {
  const { kind, options } = field
  if (options.default !== undefined) return options.default
  if (options.nullable) return null
  return kind.members ? applyFallbacks(kind.members, {}) : kind.empty
}

/** Returns `values` with the fallback of each absent field: the meaning of an absent member in a create or replace. */
export function applyFallbacks(fields: Fields, values: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const complete: Record<string, unknown> = {}
  for (const [name, field] of listFields(fields)) {
    const value = values[name]
    if (value === undefined || value === null) complete[name] = getFallback(field)
    else
      complete[name] = field.kind.members ? applyFallbacks(field.kind.members, value as Record<string, unknown>) : value
  }
  return complete
}

/** Returns a record after a patch: structured members merge, other sent members replace, the rest is the same value. */
export function applyPatch(
  fields: Fields,
  previous: Readonly<Record<string, unknown>>,
  values: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const next: Record<string, unknown> = { ...previous }
  for (const [name, value] of Object.entries(values)) {
    const members = fields[name]?.kind.members
    next[name] = members && value !== null ? patchMembers(members, previous[name], value as ObjectValue) : value
  }
  return next
}

type ObjectValue = Readonly<Record<string, unknown>>

/** Merges members into a structured value; one that is null until then gets the defaults of the others. */
function patchMembers(members: Fields, previous: unknown, value: ObjectValue): Record<string, unknown> {
  return previous === null ? applyFallbacks(members, value) : applyPatch(members, previous as ObjectValue, value)
}

/** The error for a missing body. */
export function bodyRequiredError(): ControllerError {
  return errors.COULD_NOT_VALIDATE({ field: 'body', reason: 'is required' })
}
