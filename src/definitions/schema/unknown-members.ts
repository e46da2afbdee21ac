// Members of a body that its schema does not declare: refused, or ignored and reported.
//
// Ignored members are named in the `warnings` of the response's meta, and the command line prints them, because
// their values may be meant to grant or to restrict something.
import { invalidError, toPrintable } from '../../foundation/errors.ts'
import type { JsonSchema } from './json-schema.ts'

interface Member {
  readonly path: string
  readonly value: unknown
}

/** @throws COULD_NOT_VALIDATE with the first member that the schema does not declare */
export function rejectUnknownMembers(
  schema: JsonSchema,
  body: unknown,
  readOnlyMembers: ReadonlySet<string>,
  path: string,
): void {
  for (const unknown of findUnknownMembers(schema, body, readOnlyMembers, path))
    throw invalidError(unknown.path, 'is not known here', unknown.value)
}

// A client that sends more of them than this needs no complete list to see what is wrong.
const MAX_REPORTED = 10

/** Adds the paths of members that the schema does not declare to `reported`, up to a number. Their values may be secrets. */
export function reportUnknownMembers(
  schema: JsonSchema,
  body: unknown,
  readOnlyMembers: ReadonlySet<string>,
  path: string,
  reported: string[],
): void {
  if (reported.length >= MAX_REPORTED) return
  for (const unknown of findUnknownMembers(schema, body, readOnlyMembers, path)) {
    reported.push(toPrintable(unknown.path))
    if (reported.length >= MAX_REPORTED) return
  }
}

/**
 * Finds the members that the schema does not declare, at any depth. A map accepts any key.
 * @param readOnlyMembers what records have on read, which is not unknown
 */
function* findUnknownMembers(
  { items, properties }: JsonSchema,
  value: unknown,
  readOnlyMembers: ReadonlySet<string>,
  path: string,
): Generator<Member> {
  if (Array.isArray(value)) {
    if (items)
      for (const [at, entry] of value.entries())
        yield* findUnknownMembers(items, entry, readOnlyMembers, `${path}${at}.`)
    return
  }
  if (!isRecord(value) || !properties) return
  for (const [name, member] of Object.entries(value)) {
    const schema = Object.hasOwn(properties, name) ? properties[name] : undefined
    if (schema) yield* findUnknownMembers(schema, member, readOnlyMembers, `${path}${name}.`)
    else if (!readOnlyMembers.has(name)) yield { path: path + name, value: member }
  }
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
