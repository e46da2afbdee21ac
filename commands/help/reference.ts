// The reference of the command line, docs/cli.md: the same texts as the help pages, on one page.
import { type Manifest, type ManifestCommand, toExampleText } from '../manifest.ts'
import { renderFlagRow } from './help.ts'
import { helpPages } from './pages.ts'

export function renderReference({ commands, topics }: Manifest): string {
  const all = Object.values(commands)
    .filter(({ hidden }) => !hidden)
    .sort((a, b) => (a.id < b.id ? -1 : 1))
  const shared = Object.values(commands.version?.flags ?? {}).filter(({ helpGroup }) => helpGroup === 'GLOBAL')
  const inTopic = (name: string) => all.filter(({ id }) => id.startsWith(`${name}:`))
  return [
    '# Command line',
    '',
    'This page is written by the build from the commands themselves. `controller COMMAND --help` shows the same in a terminal.',
    '',
    '## What all commands have in common',
    '',
    ...Object.values(helpPages).flatMap(({ text }) => ['```text', text(), '```', '']),
    '### Flags of all commands that speak to a controller',
    '',
    ...shared.map(renderFlagRow).map(flagLine),
    '',
    '## Commands on their own',
    '',
    ...all.filter(({ id }) => !id.includes(':')).flatMap(commandLines),
    ...Object.entries(topics).flatMap(([name, { summary }]) => [
      `## ${name}`,
      '',
      summary,
      '',
      ...inTopic(name).flatMap(commandLines),
    ]),
  ]
    .join('\n')
    .trimEnd()
    .concat('\n')
}

function commandLines({ id, summary, args, flags, examples }: ManifestCommand): string[] {
  const own = Object.values(flags).filter(({ helpGroup, hidden }) => helpGroup !== 'GLOBAL' && !hidden)
  const given = Object.values(args).map(({ name, description = '' }) => [name.toUpperCase(), description] as const)
  return [
    `### ${id.replaceAll(':', ' ')}`,
    '',
    summary,
    '',
    '```sh',
    ...examples.map((example) => toExampleText(example, id)),
    '```',
    '',
    ...[...given, ...own.map(renderFlagRow)].map(flagLine),
    ...(given.length + own.length > 0 ? [''] : []),
  ]
}

function flagLine([name, text]: readonly [string, string]): string {
  // What stands in the text as a placeholder must not be taken for markup.
  return `- \`${name}\`${text === '' ? '' : `: ${text.replace(/[<>*_|]/g, '\\$&')}`}`
}
