// `controller version`: shows the version of this command line, and that of the controller.

import {
  type ConnectionFlags,
  connect,
  connectionFlags,
  describeNoProfile,
  hasEnvironment,
} from '../client/connection.ts'
import { Profiles } from '../client/profiles.ts'
import { PrintingCommand, printingFlags } from '../framework/base.ts'

/** The members of a version that are shown to people. */
interface ControllerVersion {
  readonly version: string
  readonly revision: string
  readonly buildDate: string
}

export class VersionCommand extends PrintingCommand {
  static override summary = 'Shows the version of this command line, and that of the controller.'
  static override baseFlags = { ...printingFlags, ...connectionFlags }
  static override examples = ['<%= config.bin %> <%= command.id %> -o json']

  async run(): Promise<void> {
    const parsed = await this.parse(VersionCommand)
    const flags = parsed.flags as ConnectionFlags & { output?: unknown }
    const commandLineVersion = `v${this.config.version}`
    const ownLine = `command line  ${commandLineVersion} (node ${process.version})`
    if (!isControllerKnown(flags)) {
      await this.print({ kind: 'done', sentence: ownLine, facts: { commandLineVersion } }, flags.output)
      const { message, hint } = describeNoProfile(Profiles.open(process.env))
      this.notice(`The version of a controller is unknown, because ${message}.\nTry: ${hint}`)
      return
    }
    const notice = (text: string) => this.notice(text)
    const client = await connect(flags, { version: this.config.version, isPublic: true, base: undefined, notice })
    try {
      const { data } = await client.call('GET', '/version').catch(async (error: unknown) => {
        // The failure says why the other version is not known.
        await this.print({ kind: 'done', sentence: ownLine, facts: { commandLineVersion } }, flags.output)
        throw error
      })
      const { version, revision, buildDate } = data as ControllerVersion
      const sentence = `${ownLine}\ncontroller    ${version} (revision ${revision}, built ${buildDate}) at ${client.target}`
      await this.print({ kind: 'done', sentence, facts: { ...(data as object), commandLineVersion } }, flags.output)
    } finally {
      await client.close()
    }
  }
}

function isControllerKnown({ offline, controller, profile }: ConnectionFlags): boolean {
  return (
    offline === true ||
    controller !== undefined ||
    profile !== undefined ||
    hasEnvironment(process.env) ||
    Profiles.open(process.env).currentName !== undefined
  )
}
