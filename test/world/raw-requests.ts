// Requests written byte by byte over TLS, for what no HTTP client would send.
import type { TcpSocketConnectOpts } from 'node:net'
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls'

export interface RawTarget {
  readonly host: string
  readonly port: number
  readonly ca: string
}

/** The address of a listening test controller, from its URL and its root certificate. */
export function rawTarget(url: string, rootPem: string): RawTarget {
  const { hostname, port } = new URL(url)
  return { host: hostname, port: Number(port), ca: rootPem }
}

/** Opens a TLS connection. @throws if the handshake fails */
export function openTls(
  target: RawTarget,
  options: ConnectionOptions & Pick<TcpSocketConnectOpts, 'localAddress'> = {},
): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ servername: 'localhost', ...target, ...options }, () => resolve(socket))
    socket.once('error', reject)
  })
}

export interface RawResponse {
  readonly status: number
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  readonly text: string
}

/** Sends one request and reads until the server closes the connection. */
export async function sendRaw(target: RawTarget, request: string | Buffer): Promise<RawResponse> {
  const socket = await openTls(target)
  socket.write(request)
  return parseResponse(await readToEnd(socket))
}

/** Everything the server sends until it closes the connection. */
export function readToEnd(socket: TLSSocket): Promise<string> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    socket.on('data', (chunk: Buffer) => chunks.push(chunk))
    socket.on('error', () => {})
    socket.on('close', () => resolve(Buffer.concat(chunks).toString()))
    socket.resume()
  })
}

/** The first response in what a server sent; the status is 0 if there is none. */
export function parseResponse(received: string): RawResponse {
  const end = received.indexOf('\r\n\r\n')
  const [statusLine = '', ...lines] = received.slice(0, end).split('\r\n')
  const headers = lines.map((line) => {
    const colon = line.indexOf(':')
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()] as const
  })
  return {
    status: Number(/^HTTP\/1\.1 (\d+)/.exec(statusLine)?.[1] ?? 0),
    headers: Object.fromEntries(headers),
    text: received.slice(end + 4),
  }
}
