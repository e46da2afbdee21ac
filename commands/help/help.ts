// Help: the whole program, a topic, a command, and the pages on what all commands have in common.
import { loadManifest, type Manifest, type ManifestCommand, type ManifestFlag, toExampleText } from '../manifest.ts'
import { alignColumns, joinPage, wrapText } from './layout.ts'
import { helpPages } from './pages.ts'

/** The page that words name; undefined where there is none. */
export function renderHelp(words: readonly string[]): string | undefined {
  const known = loadManifest()
  const id = words.join(':')
  if (id === '') return rootText(known)
  const written = helpPages[id]
  if (written) return joinPage(written.text())
  const command = known.commands[id]
  if (command) return commandText(command)
  const topic = topicOf(id, known)
  return topic === undefined ? undefined : topicText(topic, known)
}

/** The topic, also by the plural of its noun. */
function topicOf(id: string, { commands }: Manifest): string | undefined {
  const all = Object.values(commands)
  if (all.some((command) => command.id.startsWith(`${id}:`))) return id
  return all.find(({ aliases }) => aliases.some((alias) => alias.startsWith(`${id}:`)))?.id.split(':')[0]
}

function rootText({ commands, topics, version }: Manifest): string {
  const alone = Object.values(commands).filter(({ id, hidden }) => !id.includes(':') && !hidden)
  const first = ['serve', 'init', 'login']
  const summaryOf = (id: string): [string, string] => [id, commands[id]?.summary ?? '']
  const grouped = Object.entries(topics)
  const listed = (isResource: boolean) =>
    grouped
      .filter(([, topic]) => topic.isResource === isResource)
      .map(([name, { summary }]): [string, string] => [name, summary])
  return joinPage(
    `The controller of a zero-trust overlay network, version ${version}.`,
    '',
    'Usage: controller COMMAND [flags]',
    '',
    'To begin with',
    ...alignColumns(first.map(summaryOf)),
    '',
    'What there is in a network',
    ...alignColumns(listed(true)),
    '',
    'More commands',
    ...alignColumns(
      [...alone.filter(({ id }) => !first.includes(id)).map(({ id }) => summaryOf(id)), ...listed(false)].sort(),
    ),
    '',
    'Help',
    ...alignColumns([
      ['COMMAND --help', 'What a command, or a whole topic, does, with examples.'],
      ...Object.entries(helpPages).map(([name, { summary }]): [string, string] => [`help ${name}`, summary]),
    ]),
  )
}

function topicText(name: string, { commands, topics }: Manifest): string {
  const inTopic = Object.values(commands).filter(({ id, hidden }) => id.startsWith(`${name}:`) && !hidden)
  const example = inTopic.find(({ id }) => id === `${name}:create`) ?? inTopic[0]
  return joinPage(
    ...(topics[name] ? [...wrapText(topics[name].summary), ''] : []),
    `Usage: controller ${name} COMMAND [flags]`,
    '',
    'Commands',
    ...alignColumns(inTopic.map(({ id, summary }) => [id.slice(name.length + 1), summary])),
    '',
    'Example',
    ...(example?.examples ?? []).map((text) => `  ${toExampleText(text, example?.id ?? '')}`),
  )
}

function commandText(command: ManifestCommand): string {
  const { id, summary, description, args, aliases, examples } = command
  const flags = Object.values(command.flags).filter(({ hidden }) => !hidden)
  const own = flags.filter(({ helpGroup }) => helpGroup !== 'GLOBAL')
  const common = flags.filter(({ helpGroup }) => helpGroup === 'GLOBAL')
  const words = Object.values(args).map(({ name, required }) =>
    required ? name.toUpperCase() : `[${name.toUpperCase()}]`,
  )
  const section = (title: string, rows: readonly (readonly [string, string])[]) =>
    rows.length === 0 ? [] : ['', title, ...alignColumns(rows)]
  return joinPage(
    ...wrapText(summary),
    ...(description ? ['', ...wrapText(description)] : []),
    '',
    `Usage: ${['controller', ...id.split(':'), ...words].join(' ')} [flags]`,
    ...section(
      'Arguments',
      Object.values(args).map(({ name, description = '' }) => [name.toUpperCase(), description]),
    ),
    ...section('Flags', own.map(renderFlagRow)),
    ...section('Flags of all commands', common.map(renderFlagRow)),
    '',
    examples.length > 1 ? 'Examples' : 'Example',
    ...examples.map((text) => `  ${toExampleText(text, id)}`),
    ...(aliases.length > 0
      ? ['', `Also: ${aliases.map((alias) => `controller ${alias.replaceAll(':', ' ')}`).join(', ')}`]
      : []),
  )
}

/** A flag as it is typed, and what it is for. */
export function renderFlagRow(flag: ManifestFlag): readonly [string, string] {
  const { name, char, type, allowNo, helpValue, description = '', options, env } = flag
  const value = type === 'boolean' ? '' : ` ${helpValue ?? (options ? 'WORD' : 'VALUE')}`
  const notes = [
    description,
    options ? `One of ${options.join(', ')}.` : '',
    env && !description.includes(env) ? `Also by ${env}.` : '',
  ]
  return [
    `${char ? `-${char}, ` : ''}--${allowNo ? '[no-]' : ''}${name}${value}`,
    notes.filter((note) => note !== '').join(' '),
  ]
}
