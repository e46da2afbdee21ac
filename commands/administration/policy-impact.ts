// `controller policy impact`: shows what access a deletion or a change would remove and grant, without making it.
import { Flags } from '@oclif/core'
import { fetchImpact, listPolicyResources, renderImpact } from '../api/impact.ts'
import { resolveId } from '../client/names.ts'
import { loadApiDescription } from '../foundation/description.ts'
import { readJson } from '../foundation/flag-values.ts'
import { requiredArgument } from '../framework/arguments.ts'
import { defineConnectedCommand } from '../framework/connected.ts'
import { escapeLines } from '../terminal/text.ts'

const impactResources = listPolicyResources(loadApiDescription())

export const policyImpact = defineConnectedCommand({
  summary: 'Shows what access a deletion or a change would remove and grant, without making it.',
  args: {
    kind: requiredArgument({ description: 'Kind of the record.', options: impactResources.map(({ name }) => name) }),
    record: requiredArgument({ description: 'Name or id of the record.' }),
  },
  flags: {
    changes: Flags.string({
      description: 'The members to change, as JSON; @FILE reads it from a file. Default: the deletion of the record.',
      helpValue: 'JSON|@FILE',
    }),
  },
  example: 'service-policy web-users',
  async run({ client, args, flags, print }) {
    const resource = impactResources.find(({ name }) => name === args.kind)
    if (!resource) return
    const id = await resolveId(client, resource, args.record ?? '')
    const changes = flags.changes === undefined ? {} : { changes: await readJson('changes', String(flags.changes)) }
    const impact = await fetchImpact(client, { resource: resource.plural, id, ...changes })
    const lines = renderImpact(impact)
    const sentence = lines.length > 0 ? lines.join('\n') : 'No identity would lose or gain access.'
    await print({ kind: 'done', sentence: escapeLines(sentence), facts: { ...impact } })
  },
})
