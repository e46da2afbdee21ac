// The sections of a network file, as requests and responses carry them, and what the controller says of their mistakes.

import { CommandError, toExitCode } from '../foundation/exit-codes.ts'
import { RequestError } from '../foundation/request-error.ts'

/** Some records of a resource, by the members that administrators set, references by name. */
export interface ReadSection {
  /** The plural name of the resource. */
  readonly resource: string
  readonly records: readonly Readonly<Record<string, unknown>>[]
}

/** The controller's error about a member of the request. */
export interface Mistake {
  readonly field?: string | undefined
  readonly reason?: string | undefined
  readonly value?: string | undefined
}

/** The source of a plan: files, or a saved plan. Its messages name places in it. */
export interface SectionSource {
  readonly sections: readonly ReadSection[]
  /** How messages name it. */
  readonly label: string
  /** The same error, with the place of each member that the controller rejected. */
  locate(error: unknown): unknown
  /** Describes a mistake and its place; undefined if it is not at a place in the sections. */
  describeMistake(mistake: Mistake): string | undefined
}

/** The greatest number of mistakes that are reported: as many as the controller names. */
export const MAX_MISTAKES = 100

/** The part of a request that a mistake is about. */
interface MistakeSubject {
  readonly section: ReadSection | undefined
  /** Whether it is the section itself. */
  readonly isOfSection: boolean
  /** The path of a member below the records of the section. */
  readonly path: readonly string[]
}

/** The part of the sections that the field of a mistake names: `0.resource`, `0.records.3.name`. */
export function findSubject(sections: readonly ReadSection[], field: string): MistakeSubject {
  const [at = '', kind, ...path] = field.split('.')
  const section = /^\d+$/.test(at) ? sections[Number(at)] : undefined
  return { section, isOfSection: kind === 'resource', path }
}

/** `services web: roleAttributes is not known here`; undefined if the mistake is not about the sections. */
export function describeMistake(
  sections: readonly ReadSection[],
  { field = '', reason, value }: Mistake,
): string | undefined {
  const { section, isOfSection, path } = findSubject(sections, field)
  if (!section || reason === undefined) return undefined
  const subject = isOfSection ? section.resource : describeMember(section, path)
  const isComplete = isOfSection || reason.endsWith('?') || value === undefined || value === ''
  return `${subject} ${reason}${isComplete ? '' : `: ${value}`}`
}

/** `services web: roleAttributes` */
function describeMember({ resource, records }: ReadSection, [index, ...members]: readonly string[]): string {
  const name = records[Number(index)]?.name
  // The column tells which entry of a list it is.
  const member = members.join('.').replace(/\.\d+$/, '')
  return `${resource}${typeof name === 'string' ? ` ${name}` : ''}: ${member}`
}

/** An error of the controller with one line for each mistake; the same error if it names none. */
export function toLocatedError(error: unknown, describe: (mistakes: readonly Mistake[]) => readonly string[]): unknown {
  if (!(error instanceof RequestError)) return error
  const lines = describe([error, ...error.others])
  if (lines.length === 0) return error
  return new CommandError(toExitCode(error), error.code, toMistakeText(lines), { hint: 'docs/network-file.md' })
}

/** The lines of as many mistakes as are reported. */
export function toMistakeText(lines: readonly string[]): string {
  const rest = lines.length >= MAX_MISTAKES ? [`only the first ${MAX_MISTAKES} mistakes are shown`] : []
  return [...lines.slice(0, MAX_MISTAKES), ...rest].join('\n')
}
