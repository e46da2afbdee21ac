// `controller events watch`: one line for each event, while it happens, until Ctrl-C.
import { setTimeout as delay } from 'node:timers/promises'
import { Flags } from '@oclif/core'
import type { GAP } from '../../src/definitions/resources/event-types.ts'
import type { Client } from '../client/client.ts'
import { readServerEvents, type ServerEvent } from '../client/event-stream.ts'
import { isPassing } from '../client/passing-errors.ts'
import { loadApiDescription } from '../foundation/description.ts'
import { makeUsageError } from '../foundation/exit-codes.ts'
import { untilInterrupt } from '../foundation/interrupts.ts'
import { defineConnectedCommand, type ParsedFlags } from '../framework/connected.ts'
import type { OutputRecord } from '../terminal/cells.ts'
import { escapeControls, escapeJson } from '../terminal/text.ts'

const MAX_PAUSE_MS = 30_000

const gap: typeof GAP = 'gap'

const eventTypes = loadApiDescription().operations.find(({ id }) => id === 'watchEvents')?.query?.type?.schema.enum
const TYPE_WIDTH = Math.max(...((eventTypes ?? []) as readonly string[]).map(({ length }) => length))

export const eventsWatch = defineConnectedCommand({
  summary: 'Shows changes, sign-ins, sessions, and what happens in the network, one line each, until Ctrl-C.',
  description:
    'Connects again if the connection is lost, and goes on behind the last event. The output is table, which is one line for people, or jsonl, which also has the cursor of each event.',
  flags: {
    type: Flags.option({
      description: 'Only events of this type. Can be repeated.',
      options: eventTypes as readonly string[],
      multiple: true,
      multipleNonGreedy: true,
    })(),
    subject: Flags.string({
      description: 'Only events of a resource, such as services, or of the record with this id.',
    }),
    since: Flags.string({ description: 'Begin behind the event with this cursor. Default: now.', helpValue: 'CURSOR' }),
  },
  example: '--type router-online --type router-offline -o jsonl',
  async run({ client, flags, print, notice }) {
    const { output = 'table' } = flags
    if (output !== 'table' && output !== 'jsonl')
      throw makeUsageError(`events are printed as table or jsonl, not as ${output}`, { field: 'output' })
    const render = output === 'jsonl' ? toJsonLine : toLine
    const events = untilInterrupt((signal) => watch(client, flags, { notice, signal }))
    const renderAll = async function* () {
      for await (const event of events) yield `${render(event)}\n`
    }
    await print({ kind: 'pieces', pieces: renderAll() })
  },
})

/** The events of one connection after the other. @throws RequestError, UnreachableError if the first one fails, or the right has ended */
async function* watch(
  client: Client,
  flags: ParsedFlags,
  { notice, signal }: { notice(text: string): void; readonly signal: AbortSignal },
): AsyncGenerator<ServerEvent> {
  let cursor = flags.since as string | undefined
  let pauseMs = 0
  let isConnected = false
  for (;;) {
    try {
      for await (const event of readServerEvents(await client.stream('GET', toPath(flags, cursor)))) {
        if (pauseMs > 0) notice('Connected again.')
        isConnected = true
        pauseMs = 0
        cursor = event.cursor
        if (event.type !== '') yield event
      }
    } catch (error) {
      if (!isConnected || !isPassing(error)) throw error
    }
    if (signal.aborted) return
    if (pauseMs === 0) notice('The connection was lost; trying to connect again.')
    pauseMs = Math.min(Math.max(pauseMs * 2, 1_000), MAX_PAUSE_MS)
    await delay(pauseMs, undefined, { signal })
  }
}

function toPath({ type, subject }: ParsedFlags, cursor: string | undefined): string {
  const query = new URLSearchParams()
  for (const one of (type ?? []) as string[]) query.append('type', one)
  if (subject !== undefined) query.set('subject', subject as string)
  if (cursor !== undefined) query.set('since', cursor)
  return `/controller/events?${query}`
}

function toJsonLine({ cursor, data }: ServerEvent): string {
  return escapeJson(JSON.stringify({ cursor, ...JSON.parse(data) }))
}

/** The members of an event that its line may show. */
interface EventData {
  readonly at?: string
  readonly resource?: string
  readonly id?: string
  readonly missed?: readonly string[]
  readonly audit?: AuditData
}

interface AuditData {
  readonly at: string
  readonly actorKind: string
  readonly actorName: string | null
  readonly address: string | null
  readonly resource: string
  readonly entityId: string
  readonly entityName: string | null
  readonly before: OutputRecord | null
  readonly after: OutputRecord | null
  readonly method: string | null
  readonly reason: string | null
  readonly count: number
}

function toLine({ type, data }: ServerEvent): string {
  const { at, resource = '', id = '', missed, audit, ...details } = JSON.parse(data) as EventData
  if (type === gap)
    return `${toClock(undefined)}  ${type}  events may be missing of: ${missed?.join(', ')}; the lists have the present state`
  const words = audit ? describeAudit(audit) : [resource, id, ...describeDetails(details)]
  return escapeControls(
    [toClock(audit?.at ?? at), type.padEnd(TYPE_WIDTH), words.filter((word) => word !== '').join(' ')].join('  '),
  )
}

function describeAudit({ resource, entityName, entityId, ...audit }: AuditData): string[] {
  const { actorKind, actorName, address, before, after, method, reason, count } = audit
  return [
    resource,
    entityName ?? entityId,
    `by ${actorName ?? actorKind}`,
    address === null ? '' : `from ${address}`,
    method ?? '',
    reason ?? '',
    count > 1 ? `${count} times` : '',
    // The members that changed; the values are in the audit.
    before && after ? `(${Object.keys(after).join(', ')})` : '',
  ]
}

function describeDetails(details: object): string[] {
  return Object.entries(details).flatMap(([name, value]) =>
    value === null || value === '' || name === 'type'
      ? []
      : [`${name}=${Array.isArray(value) ? value.join(',') : value}`],
  )
}

/** The time of the user's day. */
function toClock(at: string | undefined): string {
  return (at === undefined ? new Date() : new Date(at)).toTimeString().slice(0, 8)
}
