// The reference of all settings as a Markdown page, which the build generates from their definitions.
import { settingDocs, toVariableName, toYamlValue } from './config.ts'

export function renderConfigReference(): string {
  const head = [
    '# Settings',
    '',
    'Made by `npm run build` from `src/config.ts`.',
    '',
    'They stand in `config.yaml` in the data directory, which is written with all of them and their explanations when the directory',
    'is made. An environment variable wins over the file, and a flag of `controller serve` over both. What does not exist, and what',
    'does not fit, is refused at the start with its name. Durations are written like `90s`, `30m` or `1h30m`, sizes like `64KiB`.',
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
    ].join('\n'),
  )
  return `${[head.join('\n'), ...settings].join('\n\n')}\n`
}
