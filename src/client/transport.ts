// How commands reach a controller: one interface, whether over HTTPS or inside this process.

/** One request to an API. */
export interface Request {
  readonly method: string
  /** From the root of the server, with its query string. */
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  /** Sent as JSON, or as it is where it is text and `headers` name another type. */
  readonly body?: unknown
}

export interface Reply {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly text: string
}

/** A reply whose body is still on its way. */
export interface Stream extends Omit<Reply, 'text'> {
  readonly body: AsyncIterable<Buffer>
}

export interface Transport {
  /** Where requests go, as people know it: a URL, or a directory. */
  readonly target: string
  send(request: Request): Promise<Reply>
  /** Like `send`, for answers of any length: settles with the first of it. */
  stream(request: Request): Promise<Stream>
  close(): Promise<void>
}

/** The body of a request as text, with its type. */
export function encodeBody({ body, headers = {} }: Request): {
  text: string | undefined
  headers: Record<string, string>
} {
  if (body === undefined) return { text: undefined, headers: { ...headers } }
  const isText = typeof body === 'string' && headers['content-type'] !== undefined
  const text = isText ? body : JSON.stringify(body)
  return { text, headers: { 'content-type': 'application/json', ...headers } }
}

/** The whole of a reply. */
export async function collectReply({ body, ...head }: Stream): Promise<Reply> {
  const chunks: Buffer[] = []
  for await (const chunk of body) chunks.push(chunk)
  return { ...head, text: Buffer.concat(chunks).toString('utf8') }
}
