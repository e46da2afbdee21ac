// `controller log level`: shows or changes how much the running controller logs.
import { Args } from '@oclif/core'
import { defineConnectedCommand } from '../framework/connected.ts'

const PATH = '/controller/log/level'

export const logLevel = defineConnectedCommand({
  summary: 'Shows how much the running controller logs, or changes it until its next start.',
  args: {
    level: Args.string({
      description: 'The new level. Default: show the level.',
      options: ['debug', 'info', 'warn', 'error', 'silent'],
    }),
  },
  example: 'debug',
  async run({ client, args, print }) {
    const { data } = await (args.level ? client.call('PUT', PATH, { level: args.level }) : client.call('GET', PATH))
    const { level } = data as { level: string }
    const sentence = args.level ? `The controller logs at the level ${level}, until its next start.` : level
    await print({ kind: 'done', sentence, facts: { level } })
  },
})
