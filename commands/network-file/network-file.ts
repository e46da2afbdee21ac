// Reads a network file: YAML with one section for each resource. Mistakes are named by line and column.
import { createReadStream } from 'node:fs'
import type { Document, LineCounter, Node, Pair } from 'yaml'
import { RequestError } from '../client/client.ts'
import { CommandError, EXIT, toExitCode } from '../exit-codes.ts'
import { describeFileError } from '../file-errors.ts'
import type { NetworkSection } from './sections.ts'

/** What the controller accepts by default, and far more than a person reads. */
const MAX_FILE_BYTES = 32 * 1024 * 1024
const VERSION = 1

type Yaml = typeof import('yaml')

/** What the controller says of a member of the request. */
interface Mistake {
  readonly field?: string | undefined
  readonly reason?: string | undefined
  readonly value?: string | undefined
}

export class NetworkFile {
  readonly sections: readonly NetworkSection[]
  readonly #yaml: Yaml
  readonly #file: string
  readonly #document: Document
  readonly #lines: LineCounter

  private constructor(yaml: Yaml, file: string, document: Document, lines: LineCounter) {
    this.#yaml = yaml
    this.#file = file
    this.#document = document
    this.#lines = lines
    this.#requirePlainValues()
    this.sections = this.#readSections()
  }

  /** Reads a file; `-` is stdin. @throws CommandError with exit code 2 if it is not a network file */
  static async read(file: string): Promise<NetworkFile> {
    const text = await readText(file)
    const yaml = await import('yaml')
    const lines = new yaml.LineCounter()
    try {
      const options = { lineCounter: lines, schema: 'core', merge: false, prettyErrors: false } as const
      const document = yaml.parseDocument(text, options)
      const [problem] = [...document.errors, ...document.warnings]
      if (problem) throw makeFileError(file, lines, problem.pos[0], problem.message)
      return new NetworkFile(yaml, file, document, lines)
    } catch (error) {
      // The parser and what follows its tree are recursive.
      if (error instanceof RangeError) throw makeFileError(file, lines, 0, 'the file is nested too deeply')
      throw error
    }
  }

  /** The same error with the line and the column of each member that the controller rejected. */
  locate(error: unknown): unknown {
    if (!(error instanceof RequestError)) return error
    const message = [error, ...error.others]
      .map((mistake) => ({ offset: this.#findMistake(mistake), text: this.describeMistake(mistake) }))
      .sort((a, b) => a.offset - b.offset)
      .flatMap(({ text }) => text ?? [])
      .join('\n')
    if (message === '') return error
    return new CommandError(toExitCode(error), error.code, message, { hint: 'docs/network-file.md' })
  }

  /** What is wrong at which line and column; undefined if it is not at a place in the file. */
  describeMistake({ field = '', reason, value }: Mistake): string | undefined {
    const [at = '', kind, ...path] = field.split('.')
    const section = /^\d+$/.test(at) ? this.sections[Number(at)] : undefined
    if (!section || reason === undefined) return undefined
    const subject = kind === 'resource' ? section.resource : this.#describe(section, path)
    const place = this.#placeText(this.#findMistake({ field }))
    const isComplete = kind === 'resource' || reason.endsWith('?') || value === undefined || value === ''
    return `${place}: ${subject} ${reason}${isComplete ? '' : `: ${value}`}`
  }

  /** The offset of the member that the controller rejected. */
  #findMistake({ field = '' }: Mistake): number {
    const [at = '', kind, ...path] = field.split('.')
    const section = this.sections[Number(at)]
    return section ? this.#findOffset([section.resource, ...(kind === 'resource' ? [] : path)]) : 0
  }

  /** `services web: roleAttributes` */
  #describe({ resource, records }: NetworkSection, [index, ...members]: readonly string[]): string {
    const name = records[Number(index)]?.name
    // The column tells which entry of a list it is.
    const member = members.join('.').replace(/\.\d+$/, '')
    return `${resource}${typeof name === 'string' ? ` ${name}` : ''}: ${member}`
  }

  // ---- structure -----------------------------------------------------------------------------------------------------

  /** Aliases could expand without end, and other values have no form in JSON. */
  #requirePlainValues(): void {
    const { visit, isScalar } = this.#yaml
    visit(this.#document, {
      Alias: (_key, node) => {
        throw this.#error(node, 'aliases (*) are not supported: write the value itself')
      },
      Pair: (_key, { key }) => {
        if (!isScalar(key)) throw this.#error(key, 'the name of a member must be text')
      },
      Scalar: (_key, node) => {
        const { value } = node
        if (typeof value === 'number' && !isExact(value))
          throw this.#error(node, 'this number cannot be stored exactly: quote it if it is text')
      },
    })
  }

  #readSections(): NetworkSection[] {
    const { isMap, isSeq } = this.#yaml
    const { contents } = this.#document
    if (!isMap(contents))
      throw this.#error(contents, 'the file must have a section for each resource, such as services:')
    const sections: NetworkSection[] = []
    let version: unknown
    for (const pair of contents.items as Pair<Node, Node | null>[]) {
      const resource = String(pair.key)
      if (resource === 'version') version = pair.value?.toJS(this.#document)
      else if (!isSeq(pair.value)) throw this.#error(pair.key, `${resource} must be a list; [] is an empty one`)
      else sections.push({ resource, records: this.#readRecords(pair.value.items as Node[]) })
    }
    if (version === VERSION) return sections
    const reason = version === undefined ? 'is missing' : `is ${version}, which this program does not read`
    throw this.#error(contents, `the version ${reason}: it must be version: ${VERSION}`)
  }

  #readRecords(items: readonly Node[]): NetworkSection['records'] {
    return items.map((item) => {
      if (!this.#yaml.isMap(item)) throw this.#error(item, 'a record must have members, such as name: web')
      return item.toJS(this.#document) as Record<string, unknown>
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

  #error(node: unknown, reason: string): CommandError {
    return makeFileError(this.#file, this.#lines, (node as Node | null)?.range?.[0] ?? 0, reason)
  }

  #placeText(offset: number): string {
    return toPlaceText(this.#file, this.#lines, offset)
  }
}

function isExact(value: number): boolean {
  return Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value))
}

function makeFileError(file: string, lines: LineCounter, offset: number, reason: string): CommandError {
  return new CommandError(EXIT.usage, 'INVALID_FILE', `${toPlaceText(file, lines, offset)}: ${reason}`)
}

/** `network.yaml:12:5` */
function toPlaceText(file: string, lines: LineCounter, offset: number): string {
  const { line, col } = lines.linePos(offset)
  return `${file}:${Math.max(line, 1)}:${Math.max(col, 1)}`
}

/** Reads at most as much as is accepted, whatever the file is. */
async function readText(file: string): Promise<string> {
  const pieces: Buffer[] = []
  let size = 0
  try {
    for await (const piece of file === '-' ? process.stdin : createReadStream(file)) {
      pieces.push(piece as Buffer)
      size += (piece as Buffer).length
      if (size > MAX_FILE_BYTES)
        throw new CommandError(EXIT.usage, 'INVALID_FILE', `${file} is larger than ${MAX_FILE_BYTES / 1024 / 1024} MiB`)
    }
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(pieces))
  } catch (error) {
    if (error instanceof CommandError) throw error
    throw new CommandError(EXIT.usage, 'INVALID_FILE', `${file} cannot be read: ${describeFileError(error, file)}`)
  }
}
