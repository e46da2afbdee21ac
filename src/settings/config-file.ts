// Reads a file of settings: YAML, with the line of each setting for messages.
import { readFileSync } from 'node:fs'
import { isMap, isScalar, LineCounter, type Pair, parseDocument, visit, type YAMLMap } from 'yaml'
import { ConfigError, type SettingSource, WHOLE_FILE } from './setting-types.ts'

/** A value of the file, and its place. */
export interface FileSetting {
  readonly value: unknown
  readonly source: SettingSource
}

/** The settings of a file by key, and what stands twice in it. */
interface ConfigFile {
  readonly settings: ReadonlyMap<string, FileSetting>
  readonly mistakes: readonly ConfigError[]
}

/**
 * Reads a file. The settings of a group have the name of the group before a dot. Of what stands twice, the first place counts.
 * @param groups the names of the groups
 * @throws ConfigError if it is not YAML, or not a map
 */
export function readConfigFile(path: string, groups: ReadonlySet<string>): ConfigFile {
  const lines = new LineCounter()
  const document = parseDocument(readFileSync(path, 'utf8'), {
    lineCounter: lines,
    // Both places are named, and not only the second one.
    uniqueKeys: false,
    prettyErrors: false,
  })
  const sourceAt = (position: number): SettingSource => ({
    kind: 'file',
    path,
    line: lines.linePos(position).line,
  })
  const [error] = document.errors
  if (error) throw new ConfigError(WHOLE_FILE, `is not YAML: ${error.message}`, sourceAt(error.pos[0]))
  const sourceOf = (pair: Pair) => sourceAt(isScalar(pair.key) ? (pair.key.range?.[0] ?? 0) : 0)
  const mistakes: ConfigError[] = []
  const repeated = new Set<Pair>()
  visit(document, {
    Map: (_key, map) => {
      for (const [pair, error] of findRepeated(map, sourceOf)) {
        repeated.add(pair)
        mistakes.push(error)
      }
    },
  })
  const settings = new Map<string, FileSetting>()
  const add = (key: string, pair: Pair, source: SettingSource, isReported: boolean) => {
    const earlier = settings.get(key)
    if (earlier && !isReported) mistakes.push(duplicateError(key, earlier.source, source))
    if (earlier) return
    try {
      const value = (pair.value as { toJS?(of: unknown): unknown } | null)?.toJS?.(document) ?? null
      settings.set(key, { value, source })
    } catch (error) {
      if (!(error instanceof ReferenceError)) throw error
      mistakes.push(aliasError(key, error, source))
    }
  }
  for (const pair of listPairs(document.contents, WHOLE_FILE, sourceAt(0))) {
    const name = String(pair.key)
    const source = sourceOf(pair)
    const isReported = repeated.has(pair)
    if (!groups.has(name)) add(name, pair, source, isReported)
    else
      for (const inner of listPairs(pair.value, name, source))
        add(`${name}.${inner.key}`, inner, sourceOf(inner), isReported || repeated.has(inner))
  }
  return { settings, mistakes }
}

/** The pairs of the file, or of a group. A group without any settings may be left empty. */
function listPairs(value: unknown, name: string, source: SettingSource): readonly Pair[] {
  if (value === null || (isScalar(value) && value.value === null)) return []
  if (isMap(value)) return value.items
  throw new ConfigError(name, 'must be a map of settings', source)
}

/** The pairs whose names stand in the map before them. */
function findRepeated(map: YAMLMap, sourceOf: (pair: Pair) => SettingSource): [Pair, ConfigError][] {
  const sources = new Map<string, SettingSource>()
  return map.items.flatMap((pair): [Pair, ConfigError][] => {
    const name = String(pair.key)
    const source = sourceOf(pair)
    const earlier = sources.get(name)
    if (earlier) return [[pair, duplicateError(name, earlier, source)]]
    sources.set(name, source)
    return []
  })
}

/** YAML takes a text that begins with an asterisk for an alias, which nothing defines. */
function aliasError(key: string, { message }: ReferenceError, source: SettingSource): ConfigError {
  return new ConfigError(key, `cannot be read: ${message}; quote a text that begins with an asterisk`, source)
}

function duplicateError(name: string, first: SettingSource, second: SettingSource): ConfigError {
  const line = first.kind === 'file' ? first.line : 0
  return new ConfigError(
    name,
    `is also in line ${line}: uncomment what you need there, and delete the second place`,
    second,
  )
}
