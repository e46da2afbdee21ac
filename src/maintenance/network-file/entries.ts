// The records of a network file, each with what identifies it: unknown resources and records that stand twice are refused.
import { computeEditDistance } from '../../foundation/edit-distance.ts'
import { invalidError } from '../../foundation/errors.ts'
import { findNearest, suggestNearest } from '../../foundation/nearest.ts'
import type { FileRecord, NetworkSection } from './export.ts'
import { type FileMember, type FileResource, fileResources, listMembers } from './file-resources.ts'
import type { FileMistakes } from './mistakes.ts'

/** A record of the file. */
export interface FileEntry {
  readonly record: FileRecord
  /** Its place in the request, for errors: `0.records.3`. */
  readonly path: string
  /** Its name, or the names that identify it. */
  readonly label: string
}

const byPlural = new Map(fileResources.map((fileResource) => [fileResource.resource.plural, fileResource]))

/** The records of a file, as far as its sections are of resources. */
interface Entries {
  readonly byResource: ReadonlyMap<FileResource, readonly FileEntry[]>
  /** The names of the records in sections of no resource: what refers to one of them may be right. */
  readonly unplacedNames: ReadonlySet<string>
}

/**
 * The records of each resource that the file has a section for, without the members that records do not have. A section whose
 * name is misspelt is a mistake, and is read as the one that is most likely meant, so that the other mistakes are reported, too.
 */
export function readEntries(sections: readonly NetworkSection[], mistakes: FileMistakes): Entries {
  const entries = new Map<FileResource, FileEntry[]>()
  const unplacedNames = new Set<string>()
  const keys = new Map<FileResource, Set<string>>()
  for (const [at, { resource, records }] of sections.entries()) {
    const fileResource = byPlural.get(resource) ?? guessResource(resource, at, mistakes)
    if (!fileResource) {
      for (const { name } of records) if (typeof name === 'string') unplacedNames.add(name)
      continue
    }
    const ofResource = entries.get(fileResource) ?? []
    const seenKeys = keys.get(fileResource) ?? new Set()
    entries.set(fileResource, ofResource)
    keys.set(fileResource, seenKeys)
    for (const [index, record] of records.entries()) {
      const path = `${at}.records.${index}`
      try {
        const knownMembers = pickKnownMembers(fileResource, record, path, mistakes)
        const { key, label } = identifyEntry(fileResource, record, path)
        if (seenKeys.has(key)) throw invalidError(placeOf(fileResource, path), 'stands twice', label)
        seenKeys.add(key)
        ofResource.push({ record: knownMembers, path, label })
      } catch (error) {
        mistakes.add(error)
      }
    }
  }
  return { byResource: entries, unplacedNames }
}

/** A name with more wrong letters may be another word. */
const MAX_GUESSED_LETTERS = 2

/** The resource whose name that of a section misspells: the section is a mistake. Undefined if it may be another word. */
function guessResource(resource: string, at: number, mistakes: FileMistakes): FileResource | undefined {
  const plurals = [...byPlural.keys()]
  const rest = suggestNearest(resource, plurals) || `, which has ${plurals.join(', ')}`
  mistakes.add(invalidError(`${at}.resource`, `is not a resource of the network file${rest}`, resource))
  const [nearest = ''] = findNearest(resource, plurals)
  return computeEditDistance(resource, nearest) <= MAX_GUESSED_LETTERS ? byPlural.get(nearest) : undefined
}

/** The members that records of the resource have. The others are mistakes. */
function pickKnownMembers(
  fileResource: FileResource,
  record: FileRecord,
  path: string,
  mistakes: FileMistakes,
): FileRecord {
  const { members, variants } = fileResource
  const isOfVariant = typeof record.typeId === 'string' && variants.has(record.typeId)
  const all = isOfVariant ? listMembers(fileResource, record.typeId) : [...members, ...[...variants.values()].flat()]
  const names = new Set(all.map(({ name }) => name))
  const unknownNames = Object.keys(record).filter((name) => !names.has(name))
  for (const name of unknownNames)
    mistakes.add(invalidError(`${path}.${name}`, `is not known here${suggestNearest(name, names)}`))
  return Object.fromEntries(Object.entries(record).filter(([name]) => names.has(name)))
}

/** The place of the first member that identifies a record. */
function placeOf({ identifiedBy }: FileResource, path: string): string {
  return `${path}.${identifiedBy[0]?.name}`
}

function identifyEntry(
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
