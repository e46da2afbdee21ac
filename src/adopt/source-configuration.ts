// Reads the configuration of OpenZiti's controller: YAML, whose texts name variables of the environment. An operator can state
// its parts one by one instead.
import { readFileSync } from 'node:fs'
import { parse } from 'yaml'
import { SourceError, toRightsError } from './source-error.ts'

export interface ConfigurationOptions {
  readonly path: string
  /** The variables that its texts name. */
  readonly env: Readonly<Record<string, string | undefined>>
  /** By the beginning of paths in the configuration: what stands for it on this machine. */
  readonly pathPrefixes?: Readonly<Record<string, string>>
}

type Yaml = Readonly<Record<string, unknown>>

/** The circumstances of a reading. */
interface Reading extends Partial<ConfigurationOptions> {
  /** By the path to a part: the name by which the operator stated it. */
  readonly names?: Readonly<Record<string, string>>
}

/** The content of a file that the configuration names, or of a text in it, which has no path. */
export interface SourcePem {
  readonly content: string
  readonly path: string | undefined
}

/** A part of the configuration, by the path to it. */
export class SourceConfiguration {
  readonly #options: Reading
  readonly #place: string
  readonly #yaml: Yaml

  private constructor(options: Reading, place: string, yaml: Yaml) {
    this.#options = options
    this.#place = place
    this.#yaml = yaml
  }

  /** @throws SourceError if it is not YAML */
  static read(options: ConfigurationOptions): SourceConfiguration {
    const { path } = options
    try {
      const yaml: unknown = parse(readFileSync(path, 'utf8'), { prettyErrors: false, uniqueKeys: false })
      if (isMap(yaml)) return new SourceConfiguration(options, '', yaml)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== undefined && 'path' in (error as object)) throw error
      throw notConfigurationError(path, (error as Error).message)
    }
    throw notConfigurationError(path, 'it is not a map')
  }

  /** The same of parts that are stated one by one, whose texts are taken literally. @param names by the path to a part: its name */
  static fromParts(parts: Yaml, names: Readonly<Record<string, string>>): SourceConfiguration {
    return new SourceConfiguration({ names }, '', parts)
  }

  /** The name of a member in messages. */
  describe(key: string): string {
    const place = this.#place + key
    return this.#options.names?.[place] ?? place
  }

  /** A text, with the variables that it names; undefined if it is absent. @throws SourceError if a variable is not set */
  text(key: string): string | undefined {
    return this.#expand(key, this.#yaml[key])
  }

  /** A part; an empty one if it is absent. */
  part(key: string): SourceConfiguration {
    const value = this.#yaml[key]
    return new SourceConfiguration(this.#options, `${this.#place}${key}.`, isMap(value) ? value : {})
  }

  /** The parts of a list. */
  list(key: string): SourceConfiguration[] {
    const value = this.#yaml[key]
    const items = Array.isArray(value) ? value.filter(isMap) : []
    return items.map((item, index) => new SourceConfiguration(this.#options, `${this.#place}${key}[${index}].`, item))
  }

  has(key: string): boolean {
    return this.#yaml[key] !== undefined && this.#yaml[key] !== null
  }

  /** A path, as this machine knows it. */
  path(key: string): string | undefined {
    const text = this.text(key)
    return text === undefined ? undefined : this.#relocate(text)
  }

  /** The content of a file that is named, or that stands in the configuration itself. @throws SourceError if it cannot be read */
  pem(key: string): SourcePem | undefined {
    return this.pems(key)[0]
  }

  /** The contents of the files that are named by one text, or by a list of them. @throws SourceError if one cannot be read */
  pems(key: string): SourcePem[] {
    const value = this.#yaml[key]
    return (Array.isArray(value) ? value : [value]).flatMap((each) => {
      const text = this.#expand(key, each)
      return text === undefined || text === '' ? [] : [this.#readPem(key, text)]
    })
  }

  #readPem(key: string, text: string): SourcePem {
    const [, scheme = 'file', rest = text] = /^(\w{2,}):(?:\/\/)?([\s\S]*)$/.exec(text) ?? []
    if (scheme === 'pem') return { content: rest, path: undefined }
    if (scheme !== 'file') {
      const problem = `${this.describe(key)} is held by ${scheme}, from which no key can be copied`
      throw new SourceError(
        'KEY_NOT_A_FILE',
        problem,
        'move the key into a file, or begin a network of your own: controller init',
      )
    }
    const path = this.#relocate(rest)
    try {
      return { content: readFileSync(path, 'utf8'), path }
    } catch (error) {
      const problem = `${path}, which ${this.describe(key)} names, cannot be read`
      throw toRightsError(problem, error) ?? new SourceError('FILE_UNUSABLE', problem, this.#remedyForFile, error)
    }
  }

  get #remedyForFile(): string {
    return this.#options.names === undefined
      ? 'if the files are elsewhere on this machine: --path-prefix OLD=NEW'
      : 'state a file that this account can read'
  }

  #expand(key: string, value: unknown): string | undefined {
    if (value === undefined || value === null || typeof value === 'object') return undefined
    const { env } = this.#options
    if (env === undefined) return String(value)
    return String(value).replace(/\$(?:\{([^${}]+)\}|(\w+))/g, (_, braced: string, plain: string) => {
      const name = braced ?? plain
      const replacement = env[name]
      if (replacement !== undefined) return replacement
      const problem = `${this.describe(key)} names the environment variable ${name}, which is not set`
      throw new SourceError('VARIABLE_MISSING', problem, "--env-file with the environment of OpenZiti's controller")
    })
  }

  #relocate(path: string): string {
    for (const [old, now] of Object.entries(this.#options.pathPrefixes ?? {}))
      if (path.startsWith(old)) return now + path.slice(old.length)
    return path
  }
}

function isMap(value: unknown): value is Yaml {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function notConfigurationError(path: string, reason: string): SourceError {
  const remedy = "state the file with which OpenZiti's controller is started"
  return new SourceError('NOT_A_CONFIGURATION', `${path} is not the configuration of a controller: ${reason}`, remedy)
}
