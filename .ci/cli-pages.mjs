// Divides the reference of the command line into an index and a page for each of its sections: docs/cli/.
import { mkdirSync, readdirSync, rmSync } from 'node:fs'

/** The sections below headings of two signs: their title, and the lines below it. Lines of code are no headings. */
function listSections(text) {
  const sections = [{ title: '', lines: [] }]
  let isCode = false
  for (const line of text.split('\n')) {
    if (line.startsWith('```')) isCode = !isCode
    if (!isCode && line.startsWith('## ')) sections.push({ title: line.slice(3), lines: [] })
    else sections.at(-1).lines.push(isCode ? line : line.replace(/^###/, '##'))
  }
  return sections
}

const toFileName = (title) => `${title.toLowerCase().replace(/[^a-z0-9]+/g, '-')}.md`

/** The names of the commands of a section, by its headings. */
const listCommands = (lines) => lines.filter((line) => line.startsWith('## ')).map((line) => line.slice(3))

/** A line of the index: the page, what it is about, and a link for each of its commands. */
function renderEntry({ title, lines }) {
  const file = toFileName(title)
  const summary = lines.find((line) => line !== '' && !/^(#|```)/.test(line))
  const links = listCommands(lines).map(
    (name) =>
      `[${name.startsWith(`${title} `) ? name.slice(title.length + 1) : name}](${file}#${name.toLowerCase().replaceAll(' ', '-')})`,
  )
  const isTopic = lines.indexOf(summary) < lines.findIndex((line) => /^(#|```)/.test(line))
  return `- [**${title}**](${file})${isTopic ? `: ${summary}` : ''} ${links.join(', ')}`
}

/** The pages of the reference by file name. The index is README.md. */
export function divideReference(text) {
  const [head, ...sections] = listSections(text)
  const index = `${[...head.lines, ...sections.map(renderEntry)].join('\n')}\n`
  const pages = sections.map(({ title, lines }) => [toFileName(title), `# ${title}\n${lines.join('\n').trimEnd()}\n`])
  return new Map([['README.md', index], ...pages])
}

/** Removes the pages of a folder that no section has any more. */
export function removeOtherPages(folder, pages) {
  mkdirSync(folder, { recursive: true })
  for (const name of readdirSync(folder)) if (!pages.has(name)) rmSync(new URL(name, folder))
}
