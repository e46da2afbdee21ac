// Compares a record of the network file with the record that exists.
import { isDeepStrictEqual } from 'node:util'
import { applyPatch } from '../../definitions/schema/bodies.ts'
import { parsePemBlocks } from '../../pki/pem.ts'
import { flattenVariant, toFileRecord } from './file-records.ts'
import { type FileMember, type FileResource, listMembers } from './file-resources.ts'
import type { MemberChange, PlannedValues } from './plan-step.ts'
import type { TranslateReference } from './references.ts'

type Values = Readonly<Record<string, unknown>>

/** The record with the values of the file; members that the file leaves out keep their values. */
export function applyValues({ resource }: FileResource, before: PlannedValues, values: Values): PlannedValues {
  const after = applyPatch(resource.fields, before, values) as Record<string, unknown> & { id: string }
  const variant = resource.variants?.[before.typeId as string]
  if (variant && values.details) after.details = applyPatch(variant, before.details as Values, values.details as Values)
  return after
}

/** The members in which the file differs from a record, with their fields. */
export function listDifferences(
  fileResource: FileResource,
  before: PlannedValues,
  after: PlannedValues,
): readonly FileMember[] {
  const [was, is] = [flattenVariant(fileResource, before), flattenVariant(fileResource, after)]
  return listMembers(fileResource, before.typeId).filter(({ fieldName }) => !isSameValue(was[fieldName], is[fieldName]))
}

/** The members, before and after, as the file shows them. */
export function describeDifferences(
  fileResource: FileResource,
  before: PlannedValues,
  after: PlannedValues,
  differences: readonly FileMember[],
  toName: TranslateReference,
): MemberChange[] {
  const [was, is] = [toFileRecord(fileResource, before, toName), toFileRecord(fileResource, after, toName)]
  return differences.map(({ name }) => ({ name, before: was[name] ?? null, after: is[name] ?? null }))
}

function isSameValue(a: unknown, b: unknown): boolean {
  if (a === b || isDeepStrictEqual(a, b)) return true
  return typeof a === 'string' && typeof b === 'string' && isSamePem(a, b)
}

/** Certificates are stored in one form, whatever stands around them in a file. */
function isSamePem(a: string, b: string): boolean {
  const blocks = parsePemBlocks(a)
  return blocks.length > 0 && isDeepStrictEqual(blocks, parsePemBlocks(b))
}
