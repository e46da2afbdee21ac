// What the commands use of oclif, part by part: its index would load what runs programs and looks for plugins, too.
export * as Args from '@oclif/core/args'
export { Command } from '@oclif/core/command'
export { Config } from '@oclif/core/config'
export * as Errors from '@oclif/core/errors'
export * as Flags from '@oclif/core/flags'
