// The help of the program: oclif's, with the topics in groups, an example of each, and pages on what concerns all commands.
import { type Command, type Interfaces, Help as OclifHelp } from '@oclif/core'
import { toTypedCommand } from '../foundation/naming.ts'
import { findLongestCommand, takeNames, unknownCommandError } from '../framework/command-words.ts'
import type { Topic } from '../framework/topics.ts'
import { openStdout } from '../terminal/stdout.ts'
import { OneCommandHelp } from './command-help.ts'
import { helpPages } from './pages.ts'

/** Longer lines are hard to read. */
const MAX_WIDTH = 110

type Row = [name: string, text: string]

export class Help extends OclifHelp {
  protected override CommandHelpClass = OneCommandHelp
  #text = ''

  constructor(config: Interfaces.Config, options: Partial<Interfaces.HelpOptions> = {}) {
    super(config, { ...options, maxWidth: Math.min(process.stdout.columns || MAX_WIDTH, MAX_WIDTH) })
  }

  /** Shows what the words name. @throws CommandError if they name nothing */
  override async showHelp(argv: string[]): Promise<void> {
    const words = takeNames(argv)
    const page = helpPages[words.join(' ')]
    const id = findLongestCommand(words, this.config)?.id ?? words.join(':')
    if (page) this.log(page.text())
    else if (id === '' || this.config.findCommand(id) || this.config.findTopic(id))
      await super.showHelp(id === '' ? [] : [id])
    else throw unknownCommandError(words, this.config)
    await openStdout().write(`${this.#text.trimEnd()}\n`)
  }

  /** Collects the lines, so that a failure to write them is reported. */
  protected override log(...lines: string[]): void {
    this.#text += `${lines.join(' ')}\n`
  }

  protected override async showRootHelp(): Promise<void> {
    const { config } = this
    const topics = config.topics as (Interfaces.Topic & Partial<Topic>)[]
    const commands = this.sortedCommands.filter(({ id }) => !id.includes(':'))
    const toTopicRow = ({ name, description }: Interfaces.Topic): Row => [name, description ?? '']
    const toCommandRow = ({ id, summary }: Command.Loadable): Row => [toTypedCommand(id), summary ?? '']
    const others = topics.filter(({ name, isResource, hidden }) => !isResource && !hidden && !name.includes(':'))
    const otherRows = [
      ...commands.filter(({ id }) => !FIRST_COMMANDS.includes(id)).map(toCommandRow),
      ...others.filter(({ name }) => !config.findCommand(name)).map(toTopicRow),
    ]
    const first = FIRST_COMMANDS.flatMap((id) => config.findCommand(id) ?? []).map(toCommandRow)
    const pages = Object.entries(helpPages).map(([name, { summary }]): Row => [`help ${name}`, summary])
    const sections: [string, Row[]][] = [
      ['GETTING STARTED', first],
      ['RESOURCES', topics.filter(({ isResource }) => isResource).map(toTopicRow)],
      ['OTHER COMMANDS', otherRows.sort()],
      ['HELP', [['COMMAND --help', 'Help on a command or a topic, with examples.'], ...pages]],
    ]
    this.log(this.formatRoot())
    for (const [title, rows] of sections) this.log(`\n${this.section(title, rows)}`)
  }

  protected override async showTopicHelp(topic: Interfaces.Topic & { of?: string }): Promise<void> {
    const name = topic.of ?? topic.name
    const commands = this.sortedCommands.filter(({ id }) => id.startsWith(`${name}:`))
    const example = commands.find(({ id }) => id === `${name}:create`) ?? commands[0]
    // Before the list of commands, which changes their ids into what is typed.
    const exampleText = example && new OneCommandHelp(example, this.config, this.opts).renderExample()
    await super.showTopicHelp(this.config.findTopic(name) ?? topic)
    if (exampleText) this.log(this.section('EXAMPLE', exampleText))
  }
}

/** The way from nothing to an explained policy. */
const FIRST_COMMANDS = ['serve', 'init', 'login', 'policy:advise']
