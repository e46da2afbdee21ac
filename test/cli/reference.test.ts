// The reference of the command line: an index, and a page for each topic, which hold every command once.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'

const root = join(import.meta.dirname, '../..')
const folder = join(root, 'docs/cli')
const read = (name: string) => readFileSync(join(folder, name), 'utf8')
const headingsOf = (name: string) => [...read(name).matchAll(/^## (.+)$/gm)].map(([, heading = '']) => heading)

interface CommandOfManifest {
  readonly hidden?: boolean
}
const { commands } = JSON.parse(readFileSync(join(root, 'oclif.manifest.json'), 'utf8')) as {
  commands: Record<string, CommandOfManifest>
}
const names = Object.entries(commands).flatMap(([id, { hidden }]) => (hidden ? [] : [id.replaceAll(':', ' ')]))

describe('the reference of the command line', () => {
  it('has a page for the commands of each topic, and no other page for them', () => {
    for (const name of names) {
      const [topic = '', verb] = name.split(' ')
      const pages = readdirSync(folder).filter((page) => headingsOf(page).includes(name))

      expect([name, pages]).toEqual([name, [verb === undefined ? 'commands-without-a-topic.md' : `${topic}.md`]])
    }
  })

  it('has an index that leads to every page, and to every command', () => {
    const links = [...read('README.md').matchAll(/\]\(([\w-]+\.md)(?:#([\w-]+))?\)/g)]
    const pages = new Set(links.map(([, page = '']) => page))

    expect([...pages, 'README.md'].sort()).toEqual(readdirSync(folder).sort())
    for (const [, page = '', anchor] of links) {
      if (anchor !== undefined) {
        expect(headingsOf(page).map((name) => name.toLowerCase().replaceAll(' ', '-'))).toContain(anchor)
      }
    }
    expect(links.filter(([, page = '', anchor]) => page !== 'all-commands.md' && anchor !== undefined).length).toBe(
      names.length,
    )
  })

  it('is not one long page beside it', () => {
    expect(existsSync(join(root, 'docs/cli.md'))).toBe(false)
  })
})
