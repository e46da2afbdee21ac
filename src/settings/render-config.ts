// Writes settings as people read them: the commented file of a new data directory, and single settings as YAML.
import { parse } from 'yaml'
import { type Overrides, settingKeys, settings } from './settings.ts'

/** The file that a new data directory gets: every setting with its explanation, set if it differs from the default. */
export function renderConfigFile(values: Overrides = {}): string {
  const lines = [
    '# Settings of this controller. What is commented out has the value shown: to change it, uncomment it, and leave it where it is.',
    '# Each can also be given as an environment variable: session.timeout as CONTROLLER_SESSION_TIMEOUT.',
    '',
  ]
  let group = ''
  for (const key of settingKeys) {
    const [head = '', tail] = key.split('.')
    if (tail && head !== group) lines.push(`${head}:`)
    const indent = tail ? '  ' : ''
    const value = values[key]
    lines.push(...wrapComment(settings[key].explain).map((line) => indent + line))
    const mark = value === undefined ? '# ' : ''
    lines.push(...renderSetting(tail ?? head, value ?? settings[key].default).map((line) => indent + mark + line), '')
    group = head
  }
  return lines.join('\n')
}

/** The lines of a setting: a list of records has a line for each member, as people write YAML. */
export function renderSetting(name: string, value: unknown): string[] {
  const isListOfRecords = Array.isArray(value) && value.length > 0 && value.every((one) => typeof one === 'object')
  if (!isListOfRecords) return [`${name}: ${toYamlValue(value)}`]
  const lines = (value as object[]).flatMap((record) =>
    Object.entries(record).map(
      ([member, inner], at) => `${at === 0 ? '  - ' : '    '}${member}: ${toInlineYaml(inner)}`,
    ),
  )
  return [`${name}:`, ...lines]
}

/** A list of plain words without quotes. */
function toInlineYaml(value: unknown): string {
  return Array.isArray(value) ? `[${value.map(toYamlValue).join(', ')}]` : toYamlValue(value)
}

/** JSON is YAML. A text stands without quotes only if it is read as that text: `1e5` is a number without them. */
export function toYamlValue(value: unknown): string {
  return typeof value === 'string' && /^[\w.:/-]+$/.test(value) && parse(value) === value
    ? value
    : JSON.stringify(value)
}

const MAX_COMMENT_WIDTH = 96

function wrapComment(text: string): string[] {
  const lines: string[] = []
  for (const word of text.split(/\s+/)) {
    const line = lines.at(-1)
    if (line !== undefined && line.length + word.length < MAX_COMMENT_WIDTH) lines.push(`${lines.pop()} ${word}`)
    else lines.push(word)
  }
  return lines.map((line) => `# ${line}`)
}
