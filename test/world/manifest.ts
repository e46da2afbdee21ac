// The commands and the topics that the build lists.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Command, Interfaces } from '@oclif/core'
import type { Topic } from '../../commands/framework/topics.ts'

const read = (name: string) => JSON.parse(readFileSync(join(import.meta.dirname, '../..', name), 'utf8'))

export const { commands } = read('oclif.manifest.json') as Interfaces.Manifest
export const topics = read('dist/topics.json') as Readonly<Record<string, Topic>>

/** The first example of a command, as it is typed. */
export function findExample({ id, examples: [example = ''] = [] }: Command.Cached): string {
  return String(example)
    .replace('<%= config.bin %>', 'controller')
    .replace('<%= command.id %>', id.replaceAll(':', ' '))
}
