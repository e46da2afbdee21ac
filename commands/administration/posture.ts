// `controller identity posture` and `controller posture-check test`: what machines reported, which checks pass, and why not.

import type { CheckedPosture, PostureOverview } from '../../src/access/advice/posture-overview.ts'
import { resolvePathId } from '../client/names.ts'
import { EXIT } from '../foundation/exit-codes.ts'
import { requiredArgument } from '../framework/arguments.ts'
import { defineConnectedCommand } from '../framework/connected.ts'
import type { OutputRecord } from '../terminal/cells.ts'
import { escapeLines } from '../terminal/text.ts'

interface TestedCheck {
  readonly identity: { readonly name: string }
  readonly postureCheck: CheckedPosture
}

const IDENTITY = requiredArgument({ description: 'Name or id of the identity.' })

export const identityPosture = defineConnectedCommand({
  summary: 'Shows what the machines of an identity reported, which posture checks pass, and why not.',
  args: { identity: IDENTITY },
  example: 'laptop',
  async run({ client, args, print }) {
    const identity = await resolvePathId(client, 'identities', args.identity)
    const { data } = await client.call('GET', `/controller/posture/identities/${identity}`)
    const sentence = escapeLines(renderOverview(data as PostureOverview))
    await print({ kind: 'done', sentence, facts: data as OutputRecord })
  },
})

export const postureCheckTest = defineConnectedCommand({
  summary: 'Shows whether the machines of an identity pass a posture check, and why not.',
  args: { check: requiredArgument({ description: 'Name or id of the posture check.' }), identity: IDENTITY },
  example: 'company-domain laptop',
  async run({ client, args, print }) {
    const check = await resolvePathId(client, 'posture-checks', args.check)
    const identity = await resolvePathId(client, 'identities', args.identity)
    const { data } = await client.call('GET', `/controller/posture/checks/${check}/${identity}`)
    const tested = data as TestedCheck
    const { name, evidence, message } = tested.postureCheck
    const sentence = `${tested.identity.name} ${VERDICTS[evidence]} ${name}: ${message}`
    await print({ kind: 'done', sentence: escapeLines(sentence), facts: data as OutputRecord })
    return evidence === 'passing' ? EXIT.done : EXIT.denied
  },
})

const MARKS = { passing: '✓', failing: '✗', unknown: '?' } as const
const VERDICTS = { passing: 'passes', failing: 'fails', unknown: 'may or may not pass' } as const

function renderOverview({ identity, reported, postureChecks }: PostureOverview): string {
  const passing = postureChecks.filter(({ evidence }) => evidence === 'passing').length
  const verdict =
    postureChecks.length === 0
      ? 'policies demand no posture check'
      : `${passing} of ${postureChecks.length} posture checks pass`
  const width = Math.max(0, ...postureChecks.map(({ name }) => name.length))
  const checks = postureChecks.map(({ name, evidence, message, policies = [] }) => {
    const ofPolicies = policies.map((policy) => policy.name).join(', ')
    return `  ${MARKS[evidence]} ${name.padEnd(width)}  ${message} (demanded by ${ofPolicies})`
  })
  const states = reported.map(({ at, subject, value }) => `  ${subject}: ${value} (${at})`)
  const heading = reported.length === 0 ? 'Its machines have not reported anything.' : 'Reported:'
  return [`${identity.name}: ${verdict}`, ...checks, '', heading, ...states].join('\n')
}
