// One keep-alive TLS connection that sends a request at a time: so little work that the server's cost shows.
import { connect } from 'node:tls'

/** Opens a connection; `request` answers with {status, body}. */
export function open({ host, port }) {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port, rejectUnauthorized: false, ALPNProtocols: ['http/1.1'] })
    socket.setNoDelay(true)
    let received = Buffer.alloc(0)
    let waiting
    socket.on('data', (chunk) => {
      received = received.length === 0 ? chunk : Buffer.concat([received, chunk])
      const end = received.indexOf('\r\n\r\n')
      if (end === -1 || !waiting) return
      const head = received.toString('latin1', 0, end)
      const length = Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1] ?? Number.NaN)
      if (Number.isNaN(length)) return waiting.reject(new Error(`no content length in: ${head}`))
      if (received.length < end + 4 + length) return
      const body = received.subarray(end + 4, end + 4 + length)
      received = received.subarray(end + 4 + length)
      const { resolve: settle } = waiting
      waiting = undefined
      settle({ status: Number(head.slice(9, 12)), body })
    })
    socket.on('error', (error) => (waiting ? waiting.reject(error) : reject(error)))
    socket.on('close', () => waiting?.reject(new Error('the server closed the connection')))
    socket.on('secureConnect', () =>
      resolve({
        request: (bytes) =>
          new Promise((settle, fail) => {
            waiting = { resolve: settle, reject: fail }
            socket.write(bytes)
          }),
        close: () => socket.destroy(),
      }),
    )
  })
}

/** The bytes of a request. */
export function requestBytes({ method = 'GET', path, token, body }) {
  const text = body === undefined ? '' : JSON.stringify(body)
  const lines = [`${method} ${path} HTTP/1.1`, 'Host: bench']
  if (token) lines.push(`net-session: ${token}`)
  if (text) lines.push('Content-Type: application/json', `Content-Length: ${Buffer.byteLength(text)}`)
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n${text}`)
}

/** Runs `count` requests, or for `milliseconds`, with `inFlight` connections; answers with latencies in milliseconds. */
export async function drive(target, inFlight, next, { count = Number.POSITIVE_INFINITY, milliseconds } = {}) {
  const connections = await Promise.all(Array.from({ length: inFlight }, () => open(target)))
  const latencies = []
  const deadline = performance.now() + (milliseconds ?? Number.POSITIVE_INFINITY)
  let sent = 0
  await Promise.all(
    connections.map(async (connection) => {
      while (sent < count && performance.now() < deadline) {
        const at = sent++
        const begun = performance.now()
        const answer = await connection.request(next(at))
        latencies.push(performance.now() - begun)
        if (answer.status >= 400) throw new Error(`${answer.status}: ${answer.body.toString()}`)
      }
    }),
  ).finally(() => {
    for (const connection of connections) connection.close()
  })
  return latencies
}
