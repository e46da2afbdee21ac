// The language of the code: terms of the glossary and plain English in names, comments, messages and documents.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'

const root = join(import.meta.dirname, '../..')

/** The folders and files that follow the rules. The list only grows. */
const COVERED = ['*.md', 'bench', 'bin', 'commands', 'server', 'src', 'test']

const FILES = execFileSync('git', ['ls-files', '-co', '--exclude-standard', '--deduplicate', ...COVERED], {
  cwd: root,
  encoding: 'utf8',
})
  .split('\n')
  // This file quotes the refused words.
  .filter((file) => /\.(?:ts|js|md|sh|yml)$/.test(file) && file !== 'test/contract/language.test.ts')

/** Refused words → the words that replace them. */
const REFUSED_WORDS: Readonly<Record<string, string>> = {
  'whoever|whomever': 'the actor: the client, the caller, an administrator, another process',
  '(?:some|no|any|every)body': 'the actor: the client, the caller, an administrator, another process',
  strangers: 'anonymous requests, unauthenticated clients',
  'at the (?:most|least)': 'at most, at least',
  'mend(?:s|ed|ing)?': 'repair, or the remedy',
  'tend(?:s|ed|ing)?': 'analyze',
  'shel(?:f|ves)': 'partition',
  unhurried: 'without a timeout',
  'answer(?:s|ed|ing)?': 'response, respond',
  'remember(?:s|ed|ing)?': 'cache, store',
  'forg[eo]t(?:s|ten|ting)?': 'evict, remove, invalidate',
  'foretells?': 'predict',
  'passed over': 'skipped, ignored',
  'at hand': 'available',
  'told of': 'told about',
  'com(?:es?|ing) about': 'is created, is established',
  'through (?:the|whose) eyes': 'as the caller sees it',
  'speaks? of': 'describe, name, concern',
  '(?:nothing|else|,) beside(?! (?:the|it) )': 'besides',
  '(?<!there )is no(?! longer)': 'is not a',
}

const EXPORT = /^export (?:async |abstract |declare )*(?:function\*?|class|interface|type|const) (\w+)/gm

function findMatches(pattern: RegExp, files = FILES): string[] {
  return files.flatMap((file) =>
    readFileSync(join(root, file), 'utf8')
      .split('\n')
      .flatMap((line, at) => (pattern.test(line) ? [`${file}:${at + 1}: ${line.trim().slice(0, 120)}`] : [])),
  )
}

describe('the language of the code', () => {
  it.each(Object.entries(REFUSED_WORDS))('does not say "%s", but "%s"', (words) => {
    // Not inside of other words, of names in camel case, or of environment variables.
    const pattern = new RegExp(`(?<![A-Za-z_])(?:${words})(?![a-z_])`, 'i')

    expect(findMatches(pattern)).toEqual([])
  })

  it('opens no file with a clause that has no subject and verb of its own', () => {
    const heads = FILES.filter((file) => /^(?:bench|src|server|commands|test)\/.*\.ts$/.test(file)).map(
      (file) => [file, readFileSync(join(root, file), 'utf8').split('\n', 1)[0] ?? ''] as const,
    )

    expect(heads.filter(([, head]) => /^\/\/ (?:What|Who|Whose|Whom|That|Those|Through) /.test(head))).toEqual([])
  })

  it('names in comments what a pronoun stands for, and says of parts what they do', () => {
    const comment = '(?:\\/\\*\\*|\\/\\/|^ +\\*) '
    const clauses =
      'As much of|(?:That|Those) of|Those whose|Who|Whom|Whose|What [^.]* works? with[.,;]|What decides\\.'

    expect(findMatches(new RegExp(`${comment}(?:${clauses})(?![a-z])`))).toEqual([])
  })

  it('begins comments with the thing that they are about, not with a clause', () => {
    const sources = FILES.filter((file) => /^(?:bench|src|server|commands|test)\/.*\.ts$/.test(file))
    const clause = '(?:What|Which|Who|Whom|Whose|Why|That|Those|Where)'

    expect(findMatches(new RegExp(`^\\s*(?:\\/\\*\\*|\\*|\\/\\/) ${clause} `), sources)).toEqual([])
  })

  it('names limits MAX_ and MIN_', () => {
    const pattern = /\bconst (?:MOST|LONGEST|DEEPEST|LARGEST|FARTHEST|SHORTEST|FEWEST|LEAST|NARROWEST)(?:_|\b)/

    expect(findMatches(pattern)).toEqual([])
  })

  it('does not use a participle alone as the name of a value or a function', () => {
    const participles =
      'found|known|told|shown|wanted|spoken|asked|kept|given|made|gone|taken|seen|sent|held|done|stored|answered|remembered|granted|offered|chosen|lost'

    expect(findMatches(new RegExp(`\\b(?:const|let|function) (?:${participles})\\b`))).toEqual([])
  })

  it('exports each name from one file', () => {
    const filesOf = new Map<string, Set<string>>()
    for (const file of FILES.filter((name) =>
      /^(?:src|server|commands)\/(?!storage\/migrations\/).*(?<!_pb)\.ts$/.test(name),
    )) {
      for (const [, name = ''] of readFileSync(join(root, file), 'utf8').matchAll(EXPORT))
        filesOf.set(name, (filesOf.get(name) ?? new Set()).add(file))
    }
    const repeated = [...filesOf]
      .filter(([, files]) => files.size > 1)
      .map(([name, files]) => `${name}: ${[...files].join(', ')}`)

    expect(repeated).toEqual([])
  })

  it('states the unit in the name of a duration', () => {
    expect(findMatches(/\bconst [A-Z_]*(?:TIMEOUT|LIFETIME|INTERVAL|MILLISECONDS|DELAY)\b/)).toEqual([])
  })
})

describe('the glossary', () => {
  it('explains each term in one line, once, in alphabetical order', () => {
    const lines = readFileSync(join(root, 'docs/glossary.md'), 'utf8').split('\n')
    const rows = lines.filter((line) => line.startsWith('| '))
    const terms = rows.slice(1).map((row) => row.split('|')[1]?.trim() ?? '')
    const sorted = [...terms].sort((a, b) => a.localeCompare(b, 'en', { sensitivity: 'base' }))

    expect(terms.length).toBeGreaterThan(30)
    expect(new Set(terms).size).toBe(terms.length)
    expect(terms).toEqual(sorted)
  })
})
