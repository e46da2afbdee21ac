// `controller policy impact`: what access a deletion, or a change, would take away and give, without making it.
import { Flags } from '@oclif/core'
import { apiDescription } from './api/description.ts'
import { type Impact, impactLines } from './api/impact.ts'
import { requiredArgument } from './arguments.ts'
import { connectedCommand } from './connected.ts'
import { jsonFrom } from './input.ts'
import { resolveId } from './names.ts'
import type { Entity } from './output/cells.ts'
import { safeLines } from './output/text.ts'

/** The kinds of record that decide about access, by their names in commands. */
const KINDS = [
  'identity',
  'service',
  'edge-router',
  'service-policy',
  'edge-router-policy',
  'service-edge-router-policy',
] as const

export const policyImpact = connectedCommand({
  summary: 'Shows what access a deletion, or a change, would take away and give, without making it.',
  args: {
    kind: requiredArgument({ description: 'What kind of record.', options: KINDS }),
    record: requiredArgument({ description: 'Its name or id.' }),
  },
  flags: {
    changes: Flags.string({
      description: 'The members to change, as JSON; @FILE reads it from a file. Without it: deleting the record.',
      helpValue: 'JSON|@FILE',
    }),
  },
  example: 'service-policy web-users',
  async run({ client, args, flags, print }) {
    const [resource] = Object.values(apiDescription().resources).filter(({ name }) => name === args.kind)
    if (!resource) return
    const id = await resolveId(client, resource, args.record ?? '')
    const changes = flags.changes === undefined ? {} : { changes: await jsonFrom('changes', String(flags.changes)) }
    const body = { resource: resource.plural, id, ...changes }
    const { data } = await client.call('POST', '/controller/policy/impact', body)
    const lines = impactLines(data as Impact)
    const sentence = lines.length > 0 ? lines.join('\n') : 'Nobody would lose access, and nobody gain any.'
    await print({ kind: 'done', sentence: safeLines(sentence), facts: data as Entity })
  },
})
