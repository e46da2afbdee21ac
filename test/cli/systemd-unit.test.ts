// `controller systemd-unit` for an installation whose path holds characters that systemd, or a replacement of text, would interpret.
import { cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { renderUnit } from '../../commands/local/systemd-unit.ts'

const folder = mkdtempSync(join(tmpdir(), 'unit-'))
afterAll(() => rmSync(folder, { recursive: true }))

it('a unit has the paths of the installation, in the quotes of systemd', () => {
  const root = join(folder, '100% $& "x"')
  mkdirSync(root)
  cpSync(join(import.meta.dirname, '../../docs/operations'), join(root, 'docs', 'operations'), { recursive: true })

  const unit = renderUnit(root, '/opt/$&/%h/node')

  const executable = join(folder, '100%% $& \\"x\\"', 'bin', 'controller')
  expect(unit).toContain(`\nExecStart="${executable}" serve --data-dir \${STATE_DIRECTORY}\n`)
  expect(unit).toContain('\nEnvironment="PATH=/opt/$&/%%h:/usr/local/sbin:')
  expect(unit).toContain(`\nDocumentation=file://${folder}/100%%25%%20$&%%20%%22x%%22/README.md\n`)
})
