// `controller policy advise`: explains why an identity can reach a service, or why not, link by link.

import { Flags } from '@oclif/core'
import type { Advice, AdviceLink, Remedy } from '../../src/access/advice/chain.ts'
import { quoteShellWord } from '../../src/foundation/shell-words.ts'
import { findOwnAccess, renderOwnAccess } from '../account/access.ts'
import { CLIENT_PATH } from '../client/client.ts'
import { resolvePathId } from '../client/names.ts'
import { toCommandLine } from '../foundation/command-lines.ts'
import { loadApiDescription } from '../foundation/description.ts'
import { EXIT, makeUsageError } from '../foundation/exit-codes.ts'
import { optionalArgument, requiredArgument } from '../framework/arguments.ts'
import { defineConnectedCommand } from '../framework/connected.ts'
import type { OutputRecord } from '../terminal/cells.ts'
import { escapeLines } from '../terminal/text.ts'
import { toCommandWords } from './remedies.ts'

interface CurrentIdentity {
  readonly id: string
  readonly isAdmin: boolean
}

export const policyAdvise = defineConnectedCommand({
  summary: 'Explains why an identity can reach a service, or why not, link by link, with the remedy.',
  args: {
    identity: requiredArgument({ description: 'Name or id of the identity; with --me, the service.' }),
    service: optionalArgument({ description: 'Name or id of the service.' }),
  },
  flags: {
    me: Flags.boolean({
      description: 'Explain your own access to the service; requires no right of an administrator.',
    }),
    bind: Flags.boolean({ description: 'Explain hosting the service instead of dialing it.' }),
  },
  example: 'laptop web',
  async run({ client, args, flags, print }) {
    const serviceName = flags.me ? args.identity : args.service
    if (serviceName === undefined) throw makeUsageError('missing argument: SERVICE')
    if (flags.me && args.service !== undefined) throw makeUsageError(`unexpected argument: ${args.service}`)
    const me = flags.me ? ((await client.call('GET', '/current-identity')).data as CurrentIdentity) : undefined
    if (me && !me.isAdmin) {
      const own = await findOwnAccess(client.withBase(CLIENT_PATH), serviceName)
      await print({ kind: 'done', sentence: escapeLines(renderOwnAccess(own)), facts: { ...own } })
      return own.allowed.includes(flags.bind ? 'Bind' : 'Dial') && own.missing.length === 0 ? EXIT.done : EXIT.denied
    }
    const identity = me?.id ?? (await resolvePathId(client, 'identities', args.identity))
    const service = await resolvePathId(client, 'services', serviceName)
    const type = flags.bind ? 'Bind' : 'Dial'
    const { data } = await client.call('GET', `/controller/policy/advise/${identity}/${service}?type=${type}`)
    const advice = data as Advice
    await print({ kind: 'done', sentence: escapeLines(renderAdvice(advice)), facts: data as OutputRecord })
    return advice.verdict === 'denied' ? EXIT.denied : EXIT.done
  },
})

const MARKS = { passed: '✓', failed: '✗', unknown: '?' } as const

/** The texts of the verdicts. */
const VERDICT_TEXTS = {
  allowed: 'allowed',
  denied: 'denied',
  unknown: 'unknown: nothing denies access, but not every link can be checked',
} as const

function renderAdvice({ identity, service, type, verdict, links }: Advice): string {
  const verb = type === 'Dial' ? 'dials' : 'hosts'
  const width = Math.max(...links.map(({ link }) => toLinkText(link).length))
  const indent = ' '.repeat(width + 6)
  const lines = links.flatMap((link) => [
    `  ${MARKS[link.outcome]} ${toLinkText(link.link).padEnd(width)}  ${link.message}`,
    ...renderMiss(link).map((line) => indent + line),
    ...renderRemedy(link, identity.name).map((line) => indent + line),
    ...renderHints(link, service.name).map((line) => indent + line),
  ])
  return [`${identity.name} ${verb} ${service.name}: ${VERDICT_TEXTS[verdict]}`, '', ...lines].join('\n')
}

function renderMiss({ nearestMiss }: AdviceLink): string[] {
  if (!nearestMiss) return []
  const lacking = nearestMiss.lacking.map(({ record, attributes }) =>
    attributes
      ? `${record} lacks ${attributes.map((attribute) => `#${attribute}`).join(' ')}`
      : `it does not name ${record}`,
  )
  return [`nearest: ${nearestMiss.policy.name}, but ${lacking.join(' and ')}`]
}

function renderRemedy({ remedy, alternatives = [], next = [] }: AdviceLink, identity: string): string[] {
  if (!remedy) return next.map((one, at) => `${at === 0 ? 'next:   ' : '        '}${toCommandText(one)}`)
  return [remedy, ...alternatives].flatMap((one, at) => [
    `${at === 0 ? 'remedy: ' : 'or:     '}${toCommandText(one)}`,
    ...renderSideEffect(one, identity),
  ])
}

/** The remedies that are not changes of a record. */
function renderHints({ hosts = [], warning, hint }: AdviceLink, service: string): string[] {
  return [
    ...(warning === undefined ? [] : [`warning: ${warning}`]),
    ...(hint === undefined ? [] : [`try:    ${hint}`]),
    ...hosts.map(({ name }) => `next:   ${toCommandLine('policy advise', [name, service, '--bind'])}`),
  ]
}

function renderSideEffect({ alsoOpens }: Remedy, identity: string): string[] {
  if (!alsoOpens) return []
  const { otherIdentities, otherServices, isComplete } = alsoOpens
  const least = isComplete ? '' : 'at least '
  const toCount = (count: number, one: string, many: string) => `${least}${count} other ${count === 1 ? one : many}`
  const parts = [
    ...(otherServices > 0 ? [`${toCount(otherServices, 'service', 'services')} to ${identity}`] : []),
    ...(otherIdentities > 0 ? [`access to ${toCount(otherIdentities, 'identity', 'identities')}`] : []),
  ]
  return [`        (opens ${parts.length > 0 ? `also ${parts.join(' and ')}` : 'nothing else'})`]
}

function toCommandText(remedy: Remedy): string {
  return ['controller', ...toCommandWords(remedy, loadApiDescription())].map(quoteShellWord).join(' ')
}

function toLinkText(link: string): string {
  return link.replaceAll('-', ' ')
}
