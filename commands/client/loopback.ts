// The loopback address at which a browser comes back to the command line after a sign-in (RFC 8252, section 7.3).
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { CommandError, EXIT } from '../foundation/exit-codes.ts'

const CALLBACK_PATH = '/auth/callback'
const TIMEOUT_MS = 5 * 60_000

/** A server on a loopback address that waits for one browser. */
export interface RedirectListener {
  readonly redirectUri: string
  /** Receives the requests at the callback path; returns whether the browser is the expected one. */
  onCallback(receive: (parameters: URLSearchParams) => boolean): void
  close(): void
}

/** @param port 0 for any port @throws CommandError if the port is in use */
export async function listenForRedirect(host: '127.0.0.1' | 'localhost', port: number): Promise<RedirectListener> {
  const { createServer } = await import('node:http')
  let receive: ((parameters: URLSearchParams) => boolean) | undefined
  const handle = (request: IncomingMessage, response: ServerResponse) => {
    const url = new URL(request.url ?? '/', 'http://127.0.0.1')
    const isCallback = request.method === 'GET' && url.pathname === CALLBACK_PATH
    const isExpected = isCallback && receive?.(url.searchParams) === true
    respond(response, isExpected ? 200 : 404, isExpected && url.searchParams.has('code'))
  }
  const server = createServer(handle)
  await listen(server, '127.0.0.1', port)
  const { port: openPort } = server.address() as AddressInfo
  // Browsers may look up `localhost` as either address. A machine without IPv6 has only the first.
  const second = host === 'localhost' ? createServer(handle) : undefined
  if (second) await listen(second, '::1', openPort).catch(() => undefined)
  const close = () => {
    for (const each of [server, second]) {
      each?.close()
      each?.closeIdleConnections()
    }
  }
  return {
    redirectUri: `http://${host}:${openPort}${CALLBACK_PATH}`,
    onCallback(next) {
      receive = next
    },
    close,
  }
}

function listen(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', ({ code, message }: Error & { code?: string }) => {
      const reason = code === 'EADDRINUSE' ? 'another program uses it' : message
      const text = `the browser could not come back to port ${port} of this machine: ${reason}`
      reject(new CommandError(EXIT.failed, 'PORT_IN_USE', text, { hint: '--callback-port PORT' }))
    })
    server.listen(port, host, resolve)
  })
}

/**
 * Waits for the browser. Requests with another state are not its, and are ignored.
 * @throws CommandError if it does not come in time
 */
export function awaitRedirect(
  listener: RedirectListener,
  isOwnState: (state: string) => boolean,
): Promise<URLSearchParams> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      const message = 'the sign-in was not completed in the browser within five minutes'
      reject(new CommandError(EXIT.signInFirst, 'INVALID_AUTH', message, { hint: 'run the command again' }))
    }, TIMEOUT_MS)
    listener.onCallback((parameters) => {
      if (!isOwnState(parameters.get('state') ?? '')) return false
      clearTimeout(timer)
      resolve(parameters)
      return true
    })
  })
}

const STYLE = 'body{font:1.1rem system-ui;margin:4rem auto;max-width:32rem;padding:0 1rem;color-scheme:light dark}'

function respond(response: ServerResponse, status: 200 | 404, isSignedIn: boolean): void {
  const text = isSignedIn
    ? 'You are signed in. Close this window, and return to the terminal.'
    : status === 200
      ? 'The sign-in failed. The terminal shows why.'
      : 'Nothing is here.'
  response.writeHead(status, {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    'referrer-policy': 'no-referrer',
    'cache-control': 'no-store',
    connection: 'close',
  })
  response.end(
    `<!doctype html><html lang="en"><title>Sign-in</title><style>${STYLE}</style><h1>Sign-in</h1><p>${text}</p></html>\n`,
  )
}
