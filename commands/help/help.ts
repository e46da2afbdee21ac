// Renders help: of the program, a topic, a command, or a page on all commands.
import { loadManifest, type Manifest, type ManifestCommand, type ManifestFlag, renderExample } from '../manifest.ts'
import { alignColumns, joinPage, wrapText } from './layout.ts'
import { helpPages } from './pages.ts'

/** The help page that the words name; undefined if there is none. */
export function renderHelp(words: readonly string[]): string | undefined {
  const manifest = loadManifest()
  const id = words.join(':')
  if (id === '') return renderRoot(manifest)
  const page = helpPages[id]
  if (page) return joinPage(page.text())
  const command = manifest.commands[id]
  if (command) return renderCommand(command)
  const topic = findTopic(id, manifest)
  return topic === undefined ? undefined : renderTopic(topic, manifest)
}

/** The topic with this name, or with this plural. */
function findTopic(id: string, { commands }: Manifest): string | undefined {
  const all = Object.values(commands)
  if (all.some((command) => command.id.startsWith(`${id}:`))) return id
  return all.find(({ aliases }) => aliases.some((alias) => alias.startsWith(`${id}:`)))?.id.split(':')[0]
}

function renderRoot({ commands, topics, version }: Manifest): string {
  const singleCommands = Object.values(commands).filter(({ id, hidden }) => !id.includes(':') && !hidden)
  const first = ['serve', 'init', 'login', 'policy:advise']
  const toRow = (id: string): [string, string] => [id.replace(':', ' '), commands[id]?.summary ?? '']
  const topicEntries = Object.entries(topics)
  const listTopicRows = (isResource: boolean) =>
    topicEntries
      .filter(([, topic]) => topic.isResource === isResource)
      .map(([name, { summary }]): [string, string] => [name, summary])
  return joinPage(
    `The controller of a zero-trust overlay network, version ${version}.`,
    '',
    'Usage: controller COMMAND [flags]',
    '',
    'Getting started',
    ...alignColumns(first.map(toRow)),
    '',
    'Resources',
    ...alignColumns(listTopicRows(true)),
    '',
    'Other commands',
    ...alignColumns(
      [
        ...singleCommands.filter(({ id }) => !first.includes(id)).map(({ id }) => toRow(id)),
        ...listTopicRows(false),
      ].sort(),
    ),
    '',
    'Help',
    ...alignColumns([
      ['COMMAND --help', 'Help on a command or a topic, with examples.'],
      ...Object.entries(helpPages).map(([name, { summary }]): [string, string] => [`help ${name}`, summary]),
    ]),
  )
}

function renderTopic(name: string, { commands, topics }: Manifest): string {
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
    ...(example?.examples ?? []).map((text) => `  ${renderExample(text, example?.id ?? '')}`),
  )
}

function renderCommand(command: ManifestCommand): string {
  const { id, summary, description, args, aliases, examples } = command
  const flags = Object.values(command.flags).filter(({ hidden }) => !hidden)
  const commandFlags = flags.filter(({ helpGroup }) => helpGroup !== 'GLOBAL')
  const globalFlags = flags.filter(({ helpGroup }) => helpGroup === 'GLOBAL')
  const words = Object.values(args).map(({ name, required, multiple }) => {
    const word = `${name.toUpperCase()}${multiple ? '...' : ''}`
    return required ? word : `[${word}]`
  })
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
    ...section('Flags', commandFlags.map(renderFlagRow)),
    ...section('Global flags', globalFlags.map(renderFlagRow)),
    '',
    examples.length > 1 ? 'Examples' : 'Example',
    ...examples.map((text) => `  ${renderExample(text, id)}`),
    ...(aliases.length > 0
      ? ['', `Also: ${aliases.map((alias) => `controller ${alias.replaceAll(':', ' ')}`).join(', ')}`]
      : []),
  )
}

/** A flag as it is typed, and its description. */
export function renderFlagRow(flag: ManifestFlag): readonly [string, string] {
  const { name, char, type, allowNo, helpValue, description = '', options, env } = flag
  const value = type === 'boolean' ? '' : ` ${helpValue ?? (options ? 'WORD' : 'VALUE')}`
  const notes = [
    description,
    options ? `One of ${options.join(', ')}.` : '',
    env && !description.includes(env) ? `Environment: ${env}.` : '',
  ]
  return [
    `${char ? `-${char}, ` : ''}--${allowNo ? '[no-]' : ''}${name}${value}`,
    notes.filter((note) => note !== '').join(' '),
  ]
}
