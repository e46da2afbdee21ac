// The paths that documents and comments name: each leads to a file or a folder, or ends the path of one.
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { describe, expect, it } from 'vitest'

const root = join(import.meta.dirname, '../..')

const FILES = execFileSync('git', ['ls-files', '-co', '--exclude-standard', '--deduplicate'], {
  cwd: root,
  encoding: 'utf8',
})
  .split('\n')
  .filter((file) => file !== '' && existsSync(join(root, file)))

/** Files that a document tells the reader to add. */
const TO_BE_ADDED: readonly string[] = ['0002-service-note.ts']

/** The lines that people read: of a document all, of a source file its comments. */
function linesOf(file: string): string[] {
  const lines = readFileSync(join(root, file), 'utf8').split('\n')
  return file.endsWith('.md') ? lines : lines.filter((line) => /^\s*(?:\/\/|\/?\*)/.test(line))
}

function isExisting(path: string): boolean {
  return FILES.some(
    (file) => file === path || file.endsWith(`/${path}`) || file.startsWith(`${path.replace(/\/$/, '')}/`),
  )
}

function isPath(text: string): boolean {
  return (
    /^[\w./-]+\.(?:ts|mjs)$/.test(text) || /^(?:\.github|bench|bin|commands|docs|server|src|test)\/[\w./-]*$/.test(text)
  )
}

describe('the paths', () => {
  it('in backquotes, of documents and comments, exist', () => {
    const missing = FILES.filter((file) => /\.(?:md|ts)$/.test(file) && !file.startsWith('docs/cli/')).flatMap((file) =>
      linesOf(file).flatMap((line) =>
        [...line.matchAll(/`([^`\s]+)`/g)]
          .map(([, path = '']) => path)
          .filter((path) => isPath(path) && !TO_BE_ADDED.includes(path) && !isExisting(path))
          .map((path) => `${file}: ${path}`),
      ),
    )

    expect(missing).toEqual([])
  })

  it('that links of documents lead to exist', () => {
    const missing = FILES.filter((file) => file.endsWith('.md')).flatMap((file) =>
      [...readFileSync(join(root, file), 'utf8').matchAll(/\]\((?!https?:|#)([^)#]+)/g)]
        .map(([, target = '']) => normalize(join(dirname(file), target)))
        .filter((target) => !existsSync(join(root, target)))
        .map((target) => `${file}: ${target}`),
    )

    expect(missing).toEqual([])
  })
})
