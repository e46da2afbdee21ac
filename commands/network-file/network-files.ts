// Reads several network files, and those of directories, as one network.
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { CommandError, EXIT } from '../foundation/exit-codes.ts'
import { INVALID_FILE, NetworkFile, toFileLabel } from './network-file.ts'
import {
  findSubject,
  type Mistake,
  type ReadSection,
  type SectionSource,
  toLocatedError,
  toMistakeText,
} from './sections.ts'

export class NetworkFiles implements SectionSource {
  readonly sections: readonly ReadSection[]
  readonly label: string
  readonly #files: readonly NetworkFile[]

  private constructor(files: readonly NetworkFile[], label: string) {
    this.#files = files
    this.label = label
    this.sections = files.flatMap(({ sections }) => sections)
  }

  /**
   * Reads files; `-` is stdin, and a directory stands for the files in it whose names end in `.yaml` or `.yml`, in their order.
   * @throws CommandError with exit code 2 if one is not a network file, with the mistakes of all
   */
  static async read(paths: readonly string[]): Promise<NetworkFiles> {
    const mistakes: string[] = []
    const collect = (error: unknown) => {
      if (!(error instanceof CommandError && error.code === INVALID_FILE)) throw error
      mistakes.push(...error.message.split('\n'))
    }
    const names = paths.flatMap((path) => {
      try {
        return listFiles(path)
      } catch (error) {
        collect(error)
        return []
      }
    })
    const files: NetworkFile[] = []
    for (const name of names) {
      try {
        files.push(await NetworkFile.read(name))
      } catch (error) {
        collect(error)
      }
    }
    if (mistakes.length > 0) throw new CommandError(EXIT.usage, INVALID_FILE, toMistakeText(mistakes))
    const [name = ''] = names
    return new NetworkFiles(files, names.length === 1 ? toFileLabel(name) : `${names.length} files`)
  }

  locate(error: unknown): unknown {
    return toLocatedError(error, (mistakes) =>
      mistakes
        .map((mistake) => ({ ...this.#findFile(mistake), mistake }))
        .flatMap(({ at, file, own }) => {
          const text = file?.describeMistake(own)
          return file && text !== undefined ? { at, offset: file.findOffset(own), text } : []
        })
        .sort((a, b) => a.at - b.at || a.offset - b.offset)
        .map(({ text }) => text),
    )
  }

  describeMistake(mistake: Mistake): string | undefined {
    const { file, own } = this.#findFile(mistake)
    return file?.describeMistake(own)
  }

  /** The file that a mistake is in, and the mistake by the sections of that file alone. */
  #findFile(mistake: Mistake): { readonly at: number; readonly file: NetworkFile | undefined; readonly own: Mistake } {
    const { field = '' } = mistake
    const [index = '', ...rest] = field.split('.')
    if (!findSubject(this.sections, field).section) return { at: 0, file: undefined, own: mistake }
    let section = Number(index)
    const at = this.#files.findIndex(({ sections }) => {
      if (section < sections.length) return true
      section -= sections.length
      return false
    })
    return { at, file: this.#files[at], own: { ...mistake, field: [section, ...rest].join('.') } }
  }
}

/** The files that a path stands for. */
function listFiles(path: string): string[] {
  if (path === '-' || !statSync(path, { throwIfNoEntry: false })?.isDirectory()) return [path]
  const names = readdirSync(path).filter((name) => /^[^.].*\.ya?ml$/.test(name))
  if (names.length > 0) return names.sort().map((name) => join(path, name))
  throw new CommandError(EXIT.usage, INVALID_FILE, `${path} holds no file whose name ends in .yaml or .yml`)
}
