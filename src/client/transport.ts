// The interface of transports, over HTTPS or inside this process.

/** One request to an API. */
export interface Request {
  readonly method: string
  /** The path from the root of the server, with the query string. */
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  /** Sent as JSON; a string is sent unchanged if `headers` has a content type. */
  readonly body?: unknown
}

export interface Reply {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly text: string
}

/** A reply whose body is read while it arrives. */
export interface Stream extends Omit<Reply, 'text'> {
  readonly body: AsyncIterable<Buffer>
}

export interface Transport {
  /** The URL or the data directory that requests go to, for messages. */
  readonly target: string
  send(request: Request): Promise<Reply>
  /** Like `send`, but settles with the headers, for responses of any length. */
  stream(request: Request): Promise<Stream>
  close(): Promise<void>
}

/** The body of a request as text, and the headers with its content type. */
export function encodeBody({ body, headers = {} }: Request): {
  text: string | undefined
  headers: Record<string, string>
} {
  if (body === undefined) return { text: undefined, headers: { ...headers } }
  const isText = typeof body === 'string' && headers['content-type'] !== undefined
  const text = isText ? body : JSON.stringify(body)
  return { text, headers: { 'content-type': 'application/json', ...headers } }
}

/** Reads the whole body of a stream. */
export async function collectReply({ body, ...head }: Stream): Promise<Reply> {
  const chunks: Buffer[] = []
  for await (const chunk of body) chunks.push(chunk)
  return { ...head, text: Buffer.concat(chunks).toString('utf8') }
}
