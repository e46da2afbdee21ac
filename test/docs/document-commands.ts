// The command lines that the documents show: those of their `sh` blocks, and those that a sentence or a table names.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dirname, '../..')

/** One command as a document shows it. */
export interface DocumentCommand {
  readonly page: string
  readonly line: number
  /** The command without comments, each token set apart by one space. */
  readonly text: string
  /** The program and its arguments, without quotes. */
  readonly words: readonly string[]
  /** The file that standard output goes to. */
  readonly outputFile?: string
  /** Whether it is part of an `sh` block, which a reader pastes as it is. */
  readonly isWhole: boolean
}

const listMarkdown = (folder: string) =>
  readdirSync(join(root, folder))
    .filter((name) => name.endsWith('.md'))
    .map((name) => join(folder, name))

/** The documents for people who use or run the controller. */
export const PAGES: readonly string[] = ['README.md', 'SECURITY.md', ...listMarkdown('docs')]

/** The reference, which the build generates. */
export const REFERENCE_PAGES: readonly string[] = listMarkdown('docs/cli')

/** A comment, an operator, or a word with its quoted parts. */
const TOKEN = /#.*|[&|<>]|(?:'[^']*'|"[^"]*"|[^\s'"&|<>])+/g

/** The commands of one line. `text` has no continuation. */
function parseLine(text: string, at: Pick<DocumentCommand, 'page' | 'line' | 'isWhole'>): DocumentCommand[] {
  const commands: DocumentCommand[] = []
  let tokens: string[] = []
  const end = () => {
    const operator = tokens.findIndex((token) => token === '>' || token === '|')
    const words = (operator < 0 ? tokens : tokens.slice(0, operator)).map(removeQuotes)
    const outputFile = tokens[operator] === '>' ? { outputFile: tokens[operator + 1] ?? '' } : {}
    if (words.length > 0) commands.push({ ...at, text: tokens.join(' '), words, ...outputFile })
    tokens = []
  }
  for (const [token] of text.matchAll(TOKEN)) {
    if (token.startsWith('#')) break
    if (token === '&') end()
    else tokens.push(token)
  }
  end()
  return commands
}

const removeQuotes = (token: string) =>
  token.replace(/'([^']*)'|"([^"]*)"/g, (_all, single, double) => single ?? double)

/** The commands of the `sh` blocks of a document, in order. */
export function listBlockCommands(page: string): DocumentCommand[] {
  const commands: DocumentCommand[] = []
  let isShell = false
  let continued = ''
  for (const [index, text] of readFileSync(join(root, page), 'utf8').split('\n').entries()) {
    if (/^\s*```/.test(text)) isShell = text.trim() === '```sh'
    else if (isShell && text.endsWith('\\')) continued += text.slice(0, -1)
    else if (isShell) {
      commands.push(...parseLine(continued + text, { page, line: index + 1, isWhole: true }))
      continued = ''
    }
  }
  return commands
}

/** The texts of the `yaml` blocks of a document. */
export function listYamlBlocks(page: string): string[] {
  return [...readFileSync(join(root, page), 'utf8').matchAll(/^```yaml\n([^`]*)^```$/gm)].map(([, text = '']) => text)
}

/** The commands of the controller that a document names outside of blocks, as far as it shows them, but for those that it calls missing. */
export function listNamedCommands(page: string): DocumentCommand[] {
  const [text = ''] = readFileSync(join(root, page), 'utf8').split(/^## What is not there yet$/m)
  const lines = text.split('\n')
  return lines.flatMap((line, index) =>
    [...line.matchAll(/`((?:[A-Z_]+=\S+ )?(?:bin\/)?controller [^`]+)`/g)].flatMap(([, command = '']) =>
      parseLine(command.replace(/^[A-Z_]+=\S+ /, '').replaceAll('\\|', '|'), { page, line: index + 1, isWhole: false }),
    ),
  )
}
