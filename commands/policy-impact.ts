// `controller policy impact`: what access a deletion, or a change, would take away and give, without making it.
import { Flags } from '@oclif/core'
import { loadApiDescription } from './api/description.ts'
import { fetchImpact, listPolicyResources, renderImpact } from './api/impact.ts'
import { requiredArgument } from './arguments.ts'
import { defineConnectedCommand } from './connected.ts'
import { readJson } from './input.ts'
import { resolveId } from './names.ts'
import { escapeLines } from './output/text.ts'

const kinds = listPolicyResources(loadApiDescription())

export const policyImpact = defineConnectedCommand({
  summary: 'Shows what access a deletion, or a change, would take away and give, without making it.',
  args: {
    kind: requiredArgument({ description: 'What kind of record.', options: kinds.map(({ name }) => name) }),
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
    const resource = kinds.find(({ name }) => name === args.kind)
    if (!resource) return
    const id = await resolveId(client, resource, args.record ?? '')
    const changes = flags.changes === undefined ? {} : { changes: await readJson('changes', String(flags.changes)) }
    const impact = await fetchImpact(client, { resource: resource.plural, id, ...changes })
    const lines = renderImpact(impact)
    const sentence = lines.length > 0 ? lines.join('\n') : 'Nobody would lose access, and nobody gain any.'
    await print({ kind: 'done', sentence: escapeLines(sentence), facts: { ...impact } })
  },
})
