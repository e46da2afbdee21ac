// The records of a network file, each with what identifies it: unknown resources and records that stand twice are refused.
import { invalidError } from '../errors.ts'
import type { FileRecord, NetworkSection } from './export.ts'
import { type FileMember, type FileResource, fileResources } from './file-resources.ts'

/** A record of the file. */
export interface FileEntry {
  readonly record: FileRecord
  /** Its place in the request, for errors: `0.records.3`. */
  readonly path: string
  /** Its name, or the names that identify it. */
  readonly label: string
}

const byPlural = new Map(fileResources.map((fileResource) => [fileResource.resource.plural, fileResource]))

/**
 * The records of each resource that the file has a section for.
 * @throws COULD_NOT_VALIDATE for the first mistake, by its place
 */
export function readEntries(sections: readonly NetworkSection[]): ReadonlyMap<FileResource, readonly FileEntry[]> {
  const entries = new Map<FileResource, FileEntry[]>()
  const keys = new Map<FileResource, Set<string>>()
  for (const [at, { resource, records }] of sections.entries()) {
    const fileResource = byPlural.get(resource)
    if (!fileResource) {
      const reason = `is not a resource of the network file, which has ${[...byPlural.keys()].join(', ')}`
      throw invalidError(`${at}.resource`, reason, resource)
    }
    const ofResource = entries.get(fileResource) ?? []
    const seenKeys = keys.get(fileResource) ?? new Set()
    entries.set(fileResource, ofResource)
    keys.set(fileResource, seenKeys)
    for (const [index, record] of records.entries()) {
      const path = `${at}.records.${index}`
      const { key, label } = identify(fileResource, record, path)
      if (seenKeys.has(key)) throw invalidError(placeOf(fileResource, path), 'stands twice in the file', label)
      seenKeys.add(key)
      ofResource.push({ record, path, label })
    }
  }
  return entries
}

/** Where the first member stands that identifies a record. */
function placeOf({ identifiedBy }: FileResource, path: string): string {
  return `${path}.${identifiedBy[0]?.name}`
}

function identify(
  { identifiedBy }: FileResource,
  record: FileRecord,
  path: string,
): { readonly key: string; readonly label: string } {
  const values = identifiedBy.map((member) => readIdentifier(member, record, `${path}.${member.name}`))
  return { key: JSON.stringify(values), label: values.filter((value) => value !== null && value !== '').join(', ') }
}

function readIdentifier({ name, field }: FileMember, record: FileRecord, path: string): string | null {
  const value = Object.hasOwn(record, name) ? record[name] : undefined
  if (value === null && field.options.nullable) return null
  if (typeof value === 'string' && value !== '') return value
  // Texts that may be empty, such as the identity of a terminator.
  if (field.kind.name === 'text' && !field.options.required && (value === undefined || value === '')) return ''
  if (value === undefined || value === '') throw invalidError(path, 'is required')
  throw invalidError(path, 'must be text', value)
}
