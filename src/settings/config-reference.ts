// The reference of all settings as a Markdown page, which the build generates from their definitions.
import { renderSetting, toYamlValue } from './render-config.ts'
import { settingDocs, toVariableName } from './settings.ts'

export function renderConfigReference(): string {
  const head = [
    '# Settings',
    '',
    'Made by `npm run build` from `src/settings/settings.ts`.',
    '',
    'They stand in `config.yaml` in the data directory, which is written with all of them and their explanations when the directory',
    'is made: to change one, uncomment it where it stands. An environment variable wins over the file, and a flag of `controller serve` over both. A change takes effect at the',
    'next start; an unknown setting or an invalid value is refused then, with its name and its place. Durations are written like `90s`, `30m` or `1h30m`, sizes like `64KiB`.',
  ]
  const settings = settingDocs.map(({ key, default: standard, explain }) =>
    [
      `## ${key}`,
      '',
      explain,
      '',
      '| Default | Environment |',
      '|---|---|',
      `| \`${toYamlValue(standard)}\` | \`${toVariableName(key)}\` |`,
      ...renderListExample(key, standard),
    ].join('\n'),
  )
  return `${[head.join('\n'), ...settings].join('\n\n')}\n`
}

/** A list of records as it is written in the file; nothing for other settings. */
function renderListExample(key: string, standard: unknown): string[] {
  const lines = renderSetting(key, standard)
  return lines.length < 2
    ? []
    : ['', '```yaml', ...lines, '```', '', 'In an environment variable, it is one line of YAML or JSON.']
}
