// `controller systemd-unit`: prints the unit of a systemd service, with the paths of this installation.
import { readFileSync, realpathSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { assertOutput } from '../foundation/flag-values.ts'
import { PrintingCommand } from '../framework/base.ts'

export class SystemdUnit extends PrintingCommand {
  static override summary = 'Prints a systemd unit that runs the controller, with the paths of this installation.'
  static override description =
    'Write it to /etc/systemd/system/edge-controller.service. Its account and its data directory are in the unit.'
  static override examples = ['<%= config.bin %> <%= command.id %>']

  async run(): Promise<void> {
    const { flags } = await this.parse(SystemdUnit)
    assertOutput(flags.output, 'systemd-unit', 'text')
    await this.print({ kind: 'text', text: renderUnit(findPackage(), process.execPath) }, flags.output)
  }
}

const TEMPLATE = join('docs', 'operations', 'edge-controller.service')

/** The folder of the package, two folders above this file, and also above what is built from it. */
function findPackage(): string {
  return realpathSync(fileURLToPath(new URL('../..', import.meta.url)))
}

/** The default path in which systemd looks programs up. */
const SYSTEM_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin'

/**
 * The unit of the documents, for the package in a folder.
 * @param node the path of Node.js
 */
export function renderUnit(root: string, node: string): string {
  const template = readFileSync(join(root, TEMPLATE), 'utf8')
  const isInHome = [root, node].some((path) => /^\/(home|root|run\/user)\//.test(path))
  const lines: readonly (readonly [line: RegExp, replacement: string])[] = [
    [/^# .*\n/, '# The controller as a systemd service, made by: controller systemd-unit\n'],
    [/^Documentation=.*$/m, `Documentation=file://${escapeSpecifiers(encodeURI(root))}/README.md`],
    [
      /^ExecStart=\S+/m,
      `Environment=${quoteValue(`PATH=${dirname(node)}:${SYSTEM_PATH}`)}\nExecStart=${quoteValue(join(root, 'bin', 'controller'))}`,
    ],
    [/^ProtectHome=.*$/m, isInHome ? 'ProtectHome=read-only' : 'ProtectHome=yes'],
  ]
  // By functions, because paths are not patterns of a replacement.
  return lines.reduce((unit, [line, replacement]) => unit.replace(line, () => replacement), template)
}

/** systemd replaces a percent sign and the letter behind it. */
function escapeSpecifiers(text: string): string {
  return text.replaceAll('%', '%%')
}

/** A value in the quotes of systemd. */
function quoteValue(text: string): string {
  return `"${escapeSpecifiers(text).replace(/["\\]/g, (character) => `\\${character}`)}"`
}
