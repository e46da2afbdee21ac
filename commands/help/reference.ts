// Renders the reference of the command line, which the build divides into docs/cli/, from the texts of the help.
import { stripVTControlCharacters } from 'node:util'
import { type Command, Config, type Interfaces } from '@oclif/core'
import { toTypedCommand } from '../foundation/naming.ts'
import type { Topic } from '../framework/topics.ts'
import { loadOptions } from '../oclif-options.ts'
import { OneCommandHelp } from './command-help.ts'
import { helpPages } from './pages.ts'

/** The reference as Markdown. */
export async function renderCommandReference(): Promise<string> {
  const config = await Config.load(await loadOptions())
  const commands = config.commands.filter(({ id, aliases, hidden }) => !hidden && !aliases.includes(id))
  const topics = (config.topics as (Interfaces.Topic & Partial<Topic>)[]).filter(
    ({ name, hidden }) => !hidden && commands.some(({ id }) => id.startsWith(`${name}:`)),
  )
  const toLines = (command: Command.Loadable) => renderCommandLines(new OneCommandHelp(command, config, REFERENCE))
  const version = config.findCommand('version', { must: true })
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
    ...new OneCommandHelp(version, config, REFERENCE).listGlobalFlags().map(renderRow),
    '',
    '## Commands without a topic',
    '',
    ...commands.filter(({ id }) => !id.includes(':')).flatMap(toLines),
    ...topics.flatMap(({ name, description = '' }) => [
      `## ${name}`,
      '',
      description,
      '',
      ...commands.filter(({ id }) => id.startsWith(`${name}:`)).flatMap(toLines),
    ]),
  ]
    .join('\n')
    .trimEnd()
    .concat('\n')
}

/** Lines of a page are as long as they are. */
const REFERENCE: Interfaces.HelpOptions = { maxWidth: Number.POSITIVE_INFINITY }

function renderCommandLines(help: OneCommandHelp): string[] {
  const { id, summary = '' } = help.command
  const rows = help.listRows().map(renderRow)
  const examples = stripVTControlCharacters(help.renderExample() ?? '').replace(/^\$ /gm, '')
  const typed = toTypedCommand(id)
  return [`### ${typed}`, '', summary, '', '```sh', examples, '```', '', ...rows, ...(rows.length > 0 ? [''] : [])]
}

function renderRow([name, text = '']: readonly [string, string | undefined]): string {
  // Placeholders in the text must not be read as markup.
  const plainText = stripVTControlCharacters(text)
    .replace(/\s+/g, ' ')
    .replace(/[<>*_|]/g, '\\$&')
  return `- \`${stripVTControlCharacters(name).trim()}\`${plainText === '' ? '' : `: ${plainText}`}`
}
