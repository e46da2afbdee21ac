// Reads the settings of a controller from overrides, environment, file and defaults.
import { parse } from 'yaml'
import { suggestNearest } from '../foundation/nearest.ts'
import { getAdvertisedAddress, isUnspecified } from './addresses.ts'
import { type FileSetting, readConfigFile } from './config-file.ts'
import { ConfigError, type SettingSource, splitAddress } from './setting-types.ts'
import {
  type Config,
  getDefault,
  type Overrides,
  type Setting,
  type SettingKey,
  settingGroups,
  settingKeys,
  settings,
  toVariableName,
} from './settings.ts'

/**
 * Reads the settings, in order of precedence: overrides, environment (`CONTROLLER_SESSION_TIMEOUT`), file, default.
 * @throws ConfigError with all unknown keys and invalid values
 */
export function readConfig(file: string | undefined, env: NodeJS.ProcessEnv = {}, overrides: Overrides = {}): Config {
  const { settings: fromFile, mistakes: repetitions } =
    file === undefined
      ? { settings: new Map<string, FileSetting>(), mistakes: [] }
      : readConfigFile(file, settingGroups)
  const mistakes: ConfigError[] = [...repetitions]
  for (const [key, { source }] of fromFile) {
    if (!Object.hasOwn(settings, key))
      mistakes.push(new ConfigError(key, `does not exist${suggestSetting(key)}`, source))
  }
  const sources = new Map<string, SettingSource>()
  const written = new Map<string, unknown>()
  const entries = settingKeys.map((key) => {
    const setting: Setting<unknown> = settings[key]
    try {
      const { value, source } = findValue(key, fromFile, env, overrides)
      if (source) sources.set(key, source)
      written.set(key, value)
      return [key, withSource(source, () => setting.read(value, key))]
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      mistakes.push(error)
      return [key, undefined]
    }
  })
  const [first, ...others] = mistakes
  if (first) throw new ConfigError(first.key, first.reason, first.source, others)
  const config = Object.fromEntries(entries) as Config
  configSources.set(config, sources)
  configTexts.set(config, written)
  assertAdvertised(config)
  assertSharedTogether(config)
  return config
}

/** For each configuration, the sources of the settings that are not defaults. */
const configSources = new WeakMap<Config, ReadonlyMap<string, SettingSource>>()

/** For each configuration, the values as they are written. */
const configTexts = new WeakMap<Config, ReadonlyMap<string, unknown>>()

/** A setting as it is written: 30m, and not a number of milliseconds. */
export function getWritten(config: Config, key: SettingKey): unknown {
  return configTexts.get(config)?.get(key) ?? getDefault(key)
}

/** The error for a value that a part of the controller cannot use, with the place that it comes from. */
export function invalidSettingError(config: Config, key: SettingKey, reason: string): ConfigError {
  return new ConfigError(key, reason, configSources.get(config)?.get(key))
}

function findValue(
  key: SettingKey,
  fromFile: ReadonlyMap<string, FileSetting>,
  env: NodeJS.ProcessEnv,
  overrides: Overrides,
): { readonly value: unknown; readonly source?: SettingSource } {
  if (overrides[key] !== undefined) return { value: overrides[key], source: { kind: 'override' } }
  const name = toVariableName(key)
  const text = env[name]
  if (text !== undefined && text !== '') {
    const value = parseVariable(text, key, { kind: 'variable', name })
    if (value !== null) return { value, source: { kind: 'variable', name } }
  }
  const setting = fromFile.get(key)
  return setting && setting.value !== null ? setting : { value: settings[key].default }
}

function parseVariable(text: string, key: string, source: SettingSource): unknown {
  try {
    return parse(text, { prettyErrors: false })
  } catch (error) {
    throw new ConfigError(key, `is not YAML: ${(error as Error).message}`, source)
  }
}

function withSource<T>(source: SettingSource | undefined, read: () => T): T {
  try {
    return read()
  } catch (error) {
    throw error instanceof ConfigError ? new ConfigError(error.key, error.reason, source) : error
  }
}

/** The end of a sentence: which settings an unknown one resembles, by its whole name or as one that lacks its group. */
function suggestSetting(key: string): string {
  const withoutGroup = settingKeys.filter((name) => name.endsWith(`.${key}`))
  return withoutGroup.length > 0
    ? `: did you mean ${withoutGroup.join(' or ')}?`
    : suggestNearest(key, [...settingKeys, ...settingGroups])
}

function assertAdvertised(config: Config): void {
  const { host } = splitAddress(getAdvertisedAddress(config))
  if (isUnspecified(host)) {
    throw new ConfigError('advertise', `must name an address that clients can reach: listening on ${host} names none`)
  }
}

/** The shared name and the listener for it are of no use without each other. */
function assertSharedTogether(config: Config): void {
  const hasListener = config.listeners.some(({ shared }) => shared)
  if (hasListener === (config['control.shared'] !== undefined)) return
  throw hasListener
    ? invalidSettingError(config, 'control.shared', 'must be the name of the listener that is shared')
    : invalidSettingError(config, 'listeners', 'has none with shared: true, at which control.shared leads here')
}
