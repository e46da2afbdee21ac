// Files with secrets: another account can neither prepare nor read them, and a crash does not tear them.
import {
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findFileTarget, ReservedFile, readTarget, replaceFile } from '../../commands/client/reserved-file.ts'
import { createPrivateDirectory, ensurePrivateFile, loadOrCreateKey, writePrivateFile } from '../../src/pki/files.ts'
import { lacks } from '../world/machine.ts'

const isRoot = process.geteuid?.() === 0
const modeOf = (path: string) => statSync(path).mode & 0o777
const newDirectory = () => mkdtempSync(join(tmpdir(), 'private-files-'))

let umask: number
beforeAll(() => {
  umask = process.umask(0)
})
afterAll(() => {
  process.umask(umask)
})

describe('a private directory', () => {
  it('is made with its parents, of which those that exist keep their mode', () => {
    const directory = newDirectory()
    mkdirSync(join(directory, 'open'), { mode: 0o755 })

    for (const _ of ['made', 'there already']) createPrivateDirectory(join(directory, 'open', 'a', 'b'))

    expect(['open', 'open/a', 'open/a/b'].map((name) => modeOf(join(directory, name)))).toEqual([0o755, 0o700, 0o700])
  })

  it('is refused below a file, and in the place of one', () => {
    const file = join(newDirectory(), 'file')
    writeFileSync(file, 'x')

    expect(() => createPrivateDirectory(file)).toThrow('EEXIST')
    expect(() => createPrivateDirectory(join(file, 'a', 'b'))).toThrow('ENOTDIR')
  })

  it.skipIf(lacks('/proc', existsSync('/proc/self')))('is refused by a file system that takes no new ones', () => {
    expect(() => createPrivateDirectory('/proc/a/b')).toThrow('ENOENT')
  })
})

describe('a private file', () => {
  it('is not written through a link that stands where its temporary file was expected', () => {
    const directory = newDirectory()
    const victim = join(directory, 'victim')
    writeFileSync(victim, 'untouched')
    symlinkSync(victim, join(directory, 'secret.new'))

    writePrivateFile(join(directory, 'secret'), 'content')

    expect(readFileSync(victim, 'utf8')).toBe('untouched')
    expect(readFileSync(join(directory, 'secret'), 'utf8')).toBe('content')
  })

  it('has mode 0600 under a permissive umask, whether it replaces a readable file or not', () => {
    const directory = newDirectory()
    writeFileSync(join(directory, 'old'), 'x', { mode: 0o644 })

    writePrivateFile(join(directory, 'old'), 'y')
    writePrivateFile(join(directory, 'deep', 'new'), 'y')
    ensurePrivateFile(join(directory, 'empty'))

    expect(['old', 'deep/new', 'empty'].map((name) => modeOf(join(directory, name)))).toEqual([0o600, 0o600, 0o600])
    expect(modeOf(join(directory, 'deep'))).toBe(0o700)
  })

  it('leaves no temporary file behind when it cannot be put in place', () => {
    const directory = newDirectory()
    mkdirSync(join(directory, 'taken'))

    expect(() => writePrivateFile(join(directory, 'taken'), 'content')).toThrow()

    expect(readdirSync(directory)).toEqual(['taken'])
  })
})

describe('a file with a secret that a command writes', () => {
  it('is private to the account that writes it, whatever file it replaces', () => {
    const path = join(newDirectory(), 'laptop.json')
    writeFileSync(path, 'planted', { mode: 0o666 })
    if (isRoot) chownSync(path, 12_345, 12_345)

    ReservedFile.create(findFileTarget(path)).commit('secret')

    expect(readFileSync(path, 'utf8')).toBe('secret')
    expect([statSync(path).uid, modeOf(path)]).toEqual([process.geteuid?.(), 0o600])
  })

  it.skipIf(lacks('root, who can act as another account', isRoot))(
    'is not handed to an account that renames its own file to it while root renews it',
    () => {
      const directory = newDirectory()
      const path = join(directory, 'laptop.json')
      writeFileSync(path, 'earlier secret', { mode: 0o600 })
      writeFileSync(join(directory, 'planted'), 'planted', { mode: 0o666 })
      chownSync(join(directory, 'planted'), 12_345, 12_345)

      const target = readTarget(path, (descriptor, opened) => {
        renameSync(join(directory, 'planted'), path)
        expect(readFileSync(descriptor, 'utf8')).toBe('earlier secret')
        return opened
      })
      replaceFile(target, 'secret')

      expect([readFileSync(path, 'utf8'), statSync(path).uid, modeOf(path)]).toEqual(['secret', 0, 0o600])
    },
  )
})

describe('a key file', () => {
  it('is made once, with mode 0600, and read from then on', () => {
    const path = join(newDirectory(), 'some.key')

    const creation = loadOrCreateKey(path, 32)

    expect(creation).toHaveLength(32)
    expect(modeOf(path)).toBe(0o600)
    expect(loadOrCreateKey(path, 32)).toEqual(creation)
  })

  it('is refused when it is cut short', () => {
    const path = join(newDirectory(), 'some.key')
    writeFileSync(path, 'short')

    expect(() => loadOrCreateKey(path, 32)).toThrow(/is damaged/)
  })
})
