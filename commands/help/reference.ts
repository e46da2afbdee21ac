// Renders docs/cli.md, the reference of the command line, from the texts of the help pages.
import { type Manifest, type ManifestCommand, renderExample } from '../manifest.ts'
import { renderFlagRow } from './help.ts'
import { helpPages } from './pages.ts'

/** The reference as Markdown. */
export function renderReference({ commands, topics }: Manifest): string {
  const all = Object.values(commands)
    .filter(({ hidden }) => !hidden)
    .sort((a, b) => (a.id < b.id ? -1 : 1))
  const globalFlags = Object.values(commands.version?.flags ?? {}).filter(({ helpGroup }) => helpGroup === 'GLOBAL')
  const inTopic = (name: string) => all.filter(({ id }) => id.startsWith(`${name}:`))
  return [
    '# Command line',
    '',
    'The build generates this page from the commands. `controller COMMAND --help` shows the same texts in a terminal.',
    '',
    '## All commands',
    '',
    ...Object.values(helpPages).flatMap(({ text }) => ['```text', text(), '```', '']),
    '### Global flags of commands that connect to a controller',
    '',
    ...globalFlags.map(renderFlagRow).map(renderFlagLine),
    '',
    '## Commands without a topic',
    '',
    ...all.filter(({ id }) => !id.includes(':')).flatMap(renderCommandLines),
    ...Object.entries(topics).flatMap(([name, { summary }]) => [
      `## ${name}`,
      '',
      summary,
      '',
      ...inTopic(name).flatMap(renderCommandLines),
    ]),
  ]
    .join('\n')
    .trimEnd()
    .concat('\n')
}

function renderCommandLines({ id, summary, args, flags, examples }: ManifestCommand): string[] {
  const commandFlags = Object.values(flags).filter(({ helpGroup, hidden }) => helpGroup !== 'GLOBAL' && !hidden)
  const argumentRows = Object.values(args).map(
    ({ name, description = '' }) => [name.toUpperCase(), description] as const,
  )
  return [
    `### ${id.replaceAll(':', ' ')}`,
    '',
    summary,
    '',
    '```sh',
    ...examples.map((example) => renderExample(example, id)),
    '```',
    '',
    ...[...argumentRows, ...commandFlags.map(renderFlagRow)].map(renderFlagLine),
    ...(argumentRows.length + commandFlags.length > 0 ? [''] : []),
  ]
}

function renderFlagLine([name, text]: readonly [string, string]): string {
  // Placeholders in the text must not be read as markup.
  return `- \`${name}\`${text === '' ? '' : `: ${text.replace(/[<>*_|]/g, '\\$&')}`}`
}
