// Reads a network file: YAML with one section for each resource. Mistakes are named by line and column.
import { createReadStream } from 'node:fs'
import type { Document, LineCounter, Node, Pair, YAMLError } from 'yaml'
import { isExactNumber } from '../../src/definitions/schema/exact-numbers.ts'
import { CommandError, EXIT } from '../foundation/exit-codes.ts'
import { describeFileError } from '../foundation/file-errors.ts'
import { describeMistake, findSubject, type Mistake, type ReadSection, toMistakeText } from './sections.ts'

/** The default limit of the controller, and far more than a person reads. */
const MAX_FILE_BYTES = 32 * 1024 * 1024
const VERSION = 1
const TAG_REASON = 'tags (!) are not supported: write the value without one'

const DUPLICATE_REASON = 'this member stands twice: names must be unique'

/** The code of the errors for files that are no network files. */
export const INVALID_FILE = 'INVALID_FILE'

type Yaml = typeof import('yaml')

export class NetworkFile {
  readonly sections: readonly ReadSection[]
  readonly #yaml: Yaml
  readonly #file: string
  readonly #document: Document
  readonly #lines: LineCounter
  /** The mistakes, with their places. */
  readonly #mistakes: { readonly offset: number; readonly reason: string }[] = []

  private constructor(yaml: Yaml, file: string, document: Document, lines: LineCounter) {
    this.#yaml = yaml
    this.#file = file
    this.#document = document
    this.#lines = lines
    for (const offset of listDuplicateNames(yaml, document)) this.#mistakes.push({ offset, reason: DUPLICATE_REASON })
    this.#requirePlainValues()
    // Aliases must not be expanded.
    this.#throwMistakes()
    this.sections = this.#readSections()
    this.#throwMistakes()
  }

  /** Reads a file; `-` is stdin. @throws CommandError with exit code 2 if it is not a network file */
  static async read(file: string): Promise<NetworkFile> {
    const text = await readFileText(file)
    const yaml = await import('yaml')
    const lines = new yaml.LineCounter()
    try {
      // The parser compares each name with all before it: the names of a large map are compared here.
      const options = {
        ...{ lineCounter: lines, schema: 'core', merge: false },
        uniqueKeys: false,
        prettyErrors: false,
      } as const
      const document = yaml.parseDocument(text, options)
      const [problem] = [...document.errors, ...document.warnings]
      if (problem) throw makeFileError(file, lines, problem.pos[0], describeSyntax(problem))
      return new NetworkFile(yaml, file, document, lines)
    } catch (error) {
      // The parser and what follows its tree are recursive.
      if (error instanceof RangeError) throw makeFileError(file, lines, 0, 'the file is nested too deeply')
      throw error
    }
  }

  /** Describes a mistake by its line and column; undefined if it is not at a place in the file. */
  describeMistake(mistake: Mistake): string | undefined {
    const text = describeMistake(this.sections, mistake)
    return text === undefined ? undefined : `${this.#placeText(this.findOffset(mistake))}: ${text}`
  }

  /** The place of the member that the controller rejected. */
  findOffset({ field = '' }: Mistake): number {
    const { section, isOfSection, path } = findSubject(this.sections, field)
    return section ? this.#findOffset([section.resource, ...(isOfSection ? [] : path)]) : 0
  }

  // ---- structure -----------------------------------------------------------------------------------------------------

  /** Aliases could expand without end, and other values have no form in JSON. */
  #requirePlainValues(): void {
    const { visit, isScalar, isSeq } = this.#yaml
    const rejectTag = (node: Node) => {
      if (node.tag !== undefined) this.#addMistake(node, TAG_REASON)
    }
    visit(this.#document, {
      Alias: (_key, node) => {
        this.#addMistake(node, 'aliases (*) are not supported: write the value itself')
      },
      Pair: (_key, { key }) => {
        if (!isScalar(key)) this.#addMistake(key, 'the name of a member must be text')
      },
      Collection: (_key, node) => rejectTag(node),
      Scalar: (_key, node, path) => {
        rejectTag(node)
        const { value, comment } = node
        if (value === null && comment && /^\S/.test(comment) && isSeq(path.at(-1)))
          this.#addMistake(node, `write "#${comment.split('\n')[0]}" in quotes: an unquoted # begins a comment`)
        if (typeof value === 'number' && !isExact(value, node.source))
          this.#addMistake(node, 'this number cannot be stored exactly: quote it if it is text')
      },
    })
  }

  #readSections(): ReadSection[] {
    const { isMap, isSeq } = this.#yaml
    const { contents } = this.#document
    if (!isMap(contents)) {
      const reason = contents ? 'must be a map of version: 1 and sections, such as services:' : 'is empty'
      this.#addMistake(contents, `the file ${reason}; the least that it can hold is version: ${VERSION}`)
      return []
    }
    const sections: ReadSection[] = []
    let version: unknown
    for (const pair of contents.items as Pair<Node, Node | null>[]) {
      const resource = String(pair.key)
      if (resource === 'version') version = pair.value?.toJS(this.#document)
      else if (!isSeq(pair.value))
        this.#addMistake(pair.key, `${resource} must be a list of records, each after "- "; [] is an empty one`)
      else sections.push({ resource, records: this.#readRecords(pair.value.items as Node[]) })
    }
    if (version === VERSION) return sections
    const reason = version === undefined ? 'is missing' : `is ${version}, which this program does not read`
    this.#addMistake(contents, `the version ${reason}: it must be version: ${VERSION}`)
    return sections
  }

  #readRecords(items: readonly Node[]): ReadSection['records'] {
    return items.flatMap((item): ReadSection['records'] => {
      if (!this.#yaml.isMap(item)) {
        this.#addMistake(item, 'a record must have members, such as name: web')
        return []
      }
      return [item.toJS(this.#document) as Record<string, unknown>]
    })
  }

  // ---- places --------------------------------------------------------------------------------------------------------

  /** The offset of the deepest part of a path that the file has. */
  #findOffset(path: readonly string[]): number {
    const { isMap, isSeq } = this.#yaml
    let node: unknown = this.#document.contents
    let offset = 0
    for (const step of path) {
      if (isMap(node)) {
        const pair = (node.items as Pair<Node, Node>[]).find(({ key }) => String(key) === step)
        if (!pair) break
        offset = pair.key.range?.[0] ?? offset
        node = pair.value
      } else if (isSeq(node)) {
        const item = node.items[Number(step)] as Node | undefined
        if (!item) break
        offset = item.range?.[0] ?? offset
        node = item
      } else break
    }
    return offset
  }

  #addMistake(node: unknown, reason: string): void {
    this.#mistakes.push({ offset: (node as Node | null)?.range?.[0] ?? 0, reason })
  }

  #throwMistakes(): void {
    if (this.#mistakes.length === 0) return
    const sorted = this.#mistakes.toSorted((a, b) => a.offset - b.offset)
    const lines = sorted.map(({ offset, reason }) => `${this.#placeText(offset)}: ${reason}`)
    throw new CommandError(EXIT.usage, INVALID_FILE, toMistakeText(lines))
  }

  #placeText(offset: number): string {
    return toPlaceText(this.#file, this.#lines, offset)
  }
}

/** The first mistake that keeps the file from being YAML: what follows it is most often a consequence. */
function describeSyntax({ code, message }: YAMLError): string {
  const [, end] = /(?:Missing closing|end with a) (.)/.exec(message) ?? []
  switch (code) {
    case 'MULTIPLE_DOCS':
      return 'a second document begins here (---): the file must be one document'
    case 'TAB_AS_INDENT':
      return 'indent with spaces, not with tabs'
    case 'BAD_SCALAR_START':
      return 'a value that begins with a special character, such as @, must be in quotes'
    case 'BLOCK_AS_IMPLICIT_KEY':
      return 'a value that contains a colon must be in quotes; a member must be on a line of its own'
    case 'TAG_RESOLVE_FAILED':
      return TAG_REASON
    case 'BAD_INDENT':
    case 'MISSING_CHAR':
    case 'MULTILINE_IMPLICIT_KEY':
      if (message.startsWith('Comments')) return 'an unquoted # begins a comment: put the value in quotes'
      if (end) return `what was opened before is not closed: ${end} is missing, or this line is indented too little`
      if (code === 'MULTILINE_IMPLICIT_KEY') return 'a member must be a name, a colon and a value, such as name: web'
      return 'the indentation is wrong: the members of a record begin at one column, and so do the entries of a list'
    default:
      return `this is not YAML: ${message}`
  }
}

/** The offsets of the members whose map has another one of their name before them. */
function listDuplicateNames({ visit, isScalar }: Yaml, document: Document): number[] {
  const offsets: number[] = []
  visit(document, {
    Map: (_key, { items }) => {
      const names = new Set<unknown>()
      for (const { key } of items) {
        if (!isScalar(key)) continue
        if (names.has(key.value)) offsets.push(key.range?.[0] ?? 0)
        names.add(key.value)
      }
    },
  })
  return offsets
}

/** Whether the controller stores a number as it is written. YAML also has numbers to the bases 8 and 16, and a plus before a number. */
function isExact(value: number, source = String(value)): boolean {
  if (!Number.isFinite(value)) return false
  return isExactNumber(/^0[ox]/.test(source) ? String(BigInt(source)) : source.replace(/^\+/, ''))
}

function makeFileError(file: string, lines: LineCounter, offset: number, reason: string): CommandError {
  return new CommandError(EXIT.usage, INVALID_FILE, `${toPlaceText(file, lines, offset)}: ${reason}`)
}

/** `network.yaml:12:5` */
function toPlaceText(file: string, lines: LineCounter, offset: number): string {
  const { line, col } = lines.linePos(offset)
  return `${toFileLabel(file)}:${Math.max(line, 1)}:${Math.max(col, 1)}`
}

/** How messages name the file: `-` is what stdin provides. */
export function toFileLabel(file: string): string {
  return file === '-' ? 'standard input' : file
}

/** Reads at most as much as is accepted, whatever the file is. */
async function readFileText(file: string): Promise<string> {
  const pieces: Buffer[] = []
  let size = 0
  try {
    for await (const piece of file === '-' ? process.stdin : createReadStream(file)) {
      pieces.push(piece as Buffer)
      size += (piece as Buffer).length
      if (size > MAX_FILE_BYTES)
        throw new CommandError(
          EXIT.usage,
          INVALID_FILE,
          `${toFileLabel(file)} is larger than ${MAX_FILE_BYTES / 1024 / 1024} MiB`,
        )
    }
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(pieces))
  } catch (error) {
    if (error instanceof CommandError) throw error
    throw new CommandError(
      EXIT.usage,
      INVALID_FILE,
      `${toFileLabel(file)} cannot be read: ${describeFileError(error, file)}`,
    )
  }
}
