// Attackers: they send many requests at once for some seconds, and hold connections open.
import { type RequestOptions, request } from 'node:https'
import type { TLSSocket } from 'node:tls'
import { openTls } from '../world/raw-requests.ts'
import type { Target } from './target.ts'

/** How many responses had each status; 0 counts connections that ended without one. */
export type Statuses = Record<number, number>

export interface Load {
  readonly concurrency: number
  readonly seconds: number
}

/** Sends requests for some seconds, so many at once, and counts their statuses. `send` is told the number of the request. */
export async function sendRepeatedly(
  { concurrency, seconds }: Load,
  send: (count: number) => Promise<{ status: number }>,
): Promise<Statuses> {
  const statuses: Statuses = {}
  const endsAt = performance.now() + seconds * 1_000
  let count = 0
  const attacker = async () => {
    while (performance.now() < endsAt) {
      const { status } = await send(count++).catch(() => ({ status: 0 }))
      statuses[status] = (statuses[status] ?? 0) + 1
    }
  }
  await Promise.all(Array.from({ length: concurrency }, attacker))
  return statuses
}

export interface AttackRequest {
  readonly path: string
  readonly method?: string
  readonly body?: string | Buffer
  readonly headers?: Readonly<Record<string, string>>
  /** The address that it comes from, one of 127.0.0.0/8. */
  readonly from?: string
  readonly tls?: Pick<RequestOptions, 'cert' | 'key' | 'agent'>
}

/** Sends one request, on a connection of its own unless there is an agent. */
export function sendRequest(
  { url, rootPem }: Target,
  attackRequest: AttackRequest,
): Promise<{ status: number; text: string }> {
  const { path, method = 'POST', body, headers = {}, from, tls = { agent: false } } = attackRequest
  const type = body === undefined ? {} : { 'content-type': 'application/json' }
  const options: RequestOptions = { ...tls, method, ca: rootPem, headers: { ...type, ...headers } }
  if (from !== undefined) options.localAddress = from
  return new Promise((resolve, reject) => {
    const outgoing = request(new URL(path, url), options, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('error', reject)
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString() }))
    })
    outgoing.on('error', reject)
    outgoing.end(body)
  })
}

/** One of the addresses that attackers on this machine can come from. */
export function loopbackAddress(at: number): string {
  return `127.0.${1 + Math.floor(at / 250)}.${1 + (at % 250)}`
}

const OPENED_AT_ONCE = 50

/** Opens TLS connections from four addresses, and begins with each. What the controller does not let in is not among them. */
export async function openMany(
  { raw }: Target,
  count: number,
  begin: (socket: TLSSocket, at: number) => void,
): Promise<TLSSocket[]> {
  const sockets: TLSSocket[] = []
  let tried = 0
  const opener = async () => {
    while (tried < count) {
      const at = tried++
      const socket = await openTls(raw, { localAddress: loopbackAddress(at % 4) }).catch(() => undefined)
      if (!socket) continue
      socket.on('error', () => {})
      begin(socket, at)
      sockets.push(socket)
    }
  }
  await Promise.all(Array.from({ length: OPENED_AT_ONCE }, opener))
  return sockets
}

/** Settles once every connection has ended, or after so many seconds. Returns how many are still open. */
export async function countOpen(sockets: readonly TLSSocket[], seconds: number): Promise<number> {
  let open = 0
  const ended = sockets.map((socket) => {
    if (socket.destroyed) return Promise.resolve()
    open += 1
    return new Promise<void>((resolve) =>
      socket.once('close', () => {
        open -= 1
        resolve()
      }),
    )
  })
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, seconds * 1_000)
  })
  await Promise.race([Promise.all(ended), late])
  clearTimeout(timer)
  for (const socket of sockets) socket.destroy()
  return open
}
