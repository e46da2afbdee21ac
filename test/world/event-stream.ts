// A watcher of events over real TLS, as tests read what it receives.
import { readServerEvents } from '../../commands/client/event-stream.ts'
import { MANAGEMENT, tlsTransport } from './controller.ts'

export interface ReceivedEvent {
  /** Empty for a message that only has a cursor. */
  readonly type: string
  readonly cursor: string
  // biome-ignore lint/suspicious/noExplicitAny: tests read any member of an event
  readonly data: any
}

export interface TestWatcher {
  readonly status: number
  readonly contentType: unknown
  /** The text of the response, if it is an error. */
  readonly text: string
  /** The events so far, without messages that only have a cursor. */
  readonly events: readonly ReceivedEvent[]
  /** The newest cursor. */
  readonly cursor: string
  readonly hasEnded: boolean
  close(): Promise<void>
}

/** Begins to watch, by the token of a session, or by that of a header. It settles once the stream has begun, or was refused. */
export async function watchEvents(
  { url, rootPem }: { readonly url: string; readonly rootPem: string },
  token: string,
  query = '',
  headers: Readonly<Record<string, string>> = {},
): Promise<TestWatcher> {
  const transport = tlsTransport(url, rootPem)
  const path = `${MANAGEMENT}/controller/events${query}`
  const ofSession: Readonly<Record<string, string>> = token === '' ? {} : { 'net-session': token }
  const reply = await transport.stream({ method: 'GET', path, headers: { ...ofSession, ...headers } })
  const events: ReceivedEvent[] = []
  const state = { text: '', cursor: '', hasEnded: false }
  async function read(): Promise<void> {
    for await (const { type, cursor, data } of readServerEvents(reply.body)) {
      state.cursor = cursor
      if (type !== '') events.push({ type, cursor, data: JSON.parse(data) })
    }
  }
  if (reply.status === 200) {
    read()
      .catch(() => {})
      .finally(() => {
        state.hasEnded = true
      })
  } else for await (const piece of reply.body) state.text += piece.toString()
  return {
    status: reply.status,
    contentType: reply.headers['content-type'],
    events,
    get text() {
      return state.text
    },
    get cursor() {
      return state.cursor
    },
    get hasEnded() {
      return state.hasEnded
    },
    close: () => transport.close(),
  }
}
