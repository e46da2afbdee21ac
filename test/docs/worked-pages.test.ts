// The commands of the documents, run in the order in which a reader pastes them.
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readConfig } from '../../src/settings/config.ts'
import { listBlockCommands, listYamlBlocks, PAGES } from './document-commands.ts'
import { PageRun } from './page-run.ts'
import { PROGRAMS_NOT_RUN, WORKED_PAGES } from './worked-pages.ts'

const isOfController = (program = '') => /^(?:(?:bin\/)?controller|export)$/.test(program)
const blocks = PAGES.flatMap(listBlockCommands)

describe.each(WORKED_PAGES)('$page', (page) => {
  const { exits = {}, notRun = {} } = page
  const commands = listBlockCommands(page.page)
  const run = new PageRun(page)

  beforeAll(() => run.open())
  afterAll(() => run.close())

  it.each(commands.filter(({ text, words: [program] }) => isOfController(program) && !(text in notRun)))(
    '$text',
    async (command) => {
      const { code, stderr } = await run.runCommand(command)

      expect(code, stderr).toBe(exits[command.text] ?? 0)
    },
  )

  it('has the commands that its list is about', () => {
    const listed = [page.before, page.typed, exits, notRun].flatMap((table) => Object.keys(table ?? {}))

    expect(listed.filter((text) => !commands.some((command) => command.text === text))).toEqual([])
  })
})

describe('the settings that documents show', () => {
  const SETTINGS = ['docs/console.md', 'docs/operations.md', 'docs/several-controllers.md']
  const examples = SETTINGS.flatMap((page) => listYamlBlocks(page).map((text) => [page, text] as const))

  it.each(examples.filter(([, text]) => !text.startsWith('scrape_configs:')))('fit: %s\n%s', (_page, text) => {
    const file = join(mkdtempSync(join(tmpdir(), 'settings-')), 'config.yaml')
    writeFileSync(file, text)

    expect(readConfig(file, { CONTROLLER_ADVERTISE: '[controller.example.com:1280]' })).toHaveProperty('listeners')
  })
})

describe('the lists', () => {
  it('have every page with commands', () => {
    const pages = new Set(blocks.map(({ page }) => page))

    expect(WORKED_PAGES.map(({ page }) => page).sort()).toEqual([...pages].sort())
  })

  it('have every program that is not run, and no other', () => {
    const programs = blocks.flatMap(({ words: [program = ''] }) => (isOfController(program) ? [] : [program]))

    expect([...new Set(programs)].sort()).toEqual(Object.keys(PROGRAMS_NOT_RUN).sort())
  })
})
