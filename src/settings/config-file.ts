// Reads a file of settings: YAML, with the line of each setting for messages.
import { readFileSync } from 'node:fs'
import { isMap, isScalar, LineCounter, type Pair, parseDocument, visit, type YAMLMap } from 'yaml'
import { ConfigError, type SettingSource, WHOLE_FILE } from './setting-types.ts'

/** A value of the file, and its place. */
export interface FileSetting {
  readonly value: unknown
  readonly source: SettingSource
}

/**
 * The settings of a file by key: those of a group have the name of the group before a dot.
 * @param groups the names of the groups
 * @throws ConfigError if it is not YAML, or names something twice
 */
export function readConfigFile(path: string, groups: ReadonlySet<string>): Map<string, FileSetting> {
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
  visit(document, {
    Map: (_key, map) => assertUnique(map, sourceOf),
  })
  const settings = new Map<string, FileSetting>()
  const add = (key: string, pair: Pair, source: SettingSource) => {
    const earlier = settings.get(key)
    if (earlier) throw duplicateError(key, earlier.source, source)
    const value = (pair.value as { toJS?(of: unknown): unknown } | null)?.toJS?.(document) ?? null
    settings.set(key, { value, source })
  }
  for (const pair of listPairs(document.contents, WHOLE_FILE, sourceAt(0))) {
    const name = String(pair.key)
    const source = sourceOf(pair)
    if (!groups.has(name)) add(name, pair, source)
    else for (const inner of listPairs(pair.value, name, source)) add(`${name}.${inner.key}`, inner, sourceOf(inner))
  }
  return settings
}

/** The pairs of the file, or of a group. A group without any settings may be left empty. */
function listPairs(value: unknown, name: string, source: SettingSource): readonly Pair[] {
  if (value === null || (isScalar(value) && value.value === null)) return []
  if (isMap(value)) return value.items
  throw new ConfigError(name, 'must be a map of settings', source)
}

function assertUnique(map: YAMLMap, sourceOf: (pair: Pair) => SettingSource): void {
  const sources = new Map<string, SettingSource>()
  for (const pair of map.items) {
    const name = String(pair.key)
    const earlier = sources.get(name)
    if (earlier) throw duplicateError(name, earlier, sourceOf(pair))
    sources.set(name, sourceOf(pair))
  }
}

function duplicateError(name: string, first: SettingSource, second: SettingSource): ConfigError {
  const line = first.kind === 'file' ? first.line : 0
  return new ConfigError(
    name,
    `is also in line ${line}: uncomment what you need there, and delete the second place`,
    second,
  )
}
