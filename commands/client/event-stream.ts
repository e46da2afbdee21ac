// Parses server-sent events while they arrive.

export interface ServerEvent {
  /** Empty for a message that only has a cursor. */
  readonly type: string
  /** The cursor behind the event. */
  readonly cursor: string
  readonly data: string
}

/** Yields each message of the body, as the controller sends it: `id`, `event` and one line of `data`. */
export async function* readServerEvents(body: AsyncIterable<Buffer>): AsyncGenerator<ServerEvent, void> {
  const decoder = new TextDecoder()
  let text = ''
  for await (const chunk of body) {
    text += decoder.decode(chunk, { stream: true })
    const end = text.lastIndexOf('\n\n')
    if (end < 0) continue
    for (const message of text.slice(0, end).split('\n\n')) yield parseMessage(message)
    text = text.slice(end + 2)
  }
}

function parseMessage(message: string): ServerEvent {
  const fields = new Map(
    message.split('\n').map((line) => {
      const at = line.indexOf(':')
      return [line.slice(0, at), line.slice(at + 1).trimStart()]
    }),
  )
  return { type: fields.get('event') ?? '', cursor: fields.get('id') ?? '', data: fields.get('data') ?? '' }
}
