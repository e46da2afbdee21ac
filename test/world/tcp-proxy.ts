// A proxy that loses, or delays, what a test wants to be lost or late between a client and a server.
import { connect, createServer, type Server, type Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'

export class TcpProxy {
  /** Breaks the connection, in place of passing on, when what the client sends contains this. */
  lostRequest: string | undefined
  /** The same for what the server sends. */
  lostResponse: string | undefined
  /** Runs once, before it is passed on, when what the client sends contains the text. Passes on only if it returns true. */
  noticed: { readonly text: string; readonly run: () => boolean } | undefined
  /** Passes on another text of the same length in place of one that the client sends. */
  replaced: { readonly text: string; readonly by: string } | undefined
  /** Passes nothing on meanwhile, and keeps connections open. */
  isHolding = false
  /** The same in one direction. */
  isHoldingRequests = false
  isHoldingResponses = false
  /** How long it keeps what is sent in either direction. */
  delayMs = 0
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  /** Resolve when all that came for a socket before is passed on. */
  readonly #passed = new WeakMap<Socket, Promise<void>>()

  private constructor(target: number) {
    // As the two sides of the proxy have it between them.
    const noDelay = true
    this.#server = createServer({ noDelay }, (client) => {
      const server = connect({ port: target, host: '127.0.0.1', noDelay })
      const end = () => {
        client.destroy()
        server.destroy()
      }
      for (const socket of [client, server]) {
        this.#sockets.add(socket)
        socket.on('error', end).on('close', () => {
          this.#sockets.delete(socket)
          end()
        })
      }
      client.on('data', (data) => {
        if (this.noticed && data.includes(this.noticed.text)) {
          const { run } = this.noticed
          this.noticed = undefined
          if (!run()) return
        }
        if (this.lostRequest && data.includes(this.lostRequest)) end()
        else if (!this.isHolding && !this.isHoldingRequests) this.#pass(this.#replace(data), server)
      })
      server.on('data', (data) => {
        if (this.lostResponse && data.includes(this.lostResponse)) end()
        else if (!this.isHolding && !this.isHoldingResponses) this.#pass(data, client)
      })
    })
  }

  static async before(url: string): Promise<{ proxy: TcpProxy; url: string }> {
    const target = new URL(url)
    const proxy = new TcpProxy(Number(target.port))
    await new Promise<void>((resolve) => proxy.#server.listen(0, '127.0.0.1', resolve))
    target.port = String((proxy.#server.address() as { port: number }).port)
    return { proxy, url: target.href }
  }

  #replace(data: Buffer): Buffer {
    if (!this.replaced) return data
    const { text, by } = this.replaced
    return Buffer.from(data.toString('latin1').replace(text, by.padEnd(text.length)), 'latin1')
  }

  /** In the order in which it came, also after the delay has become shorter. */
  #pass(data: Buffer, to: Socket): void {
    const before = this.#passed.get(to)
    if (this.delayMs === 0 && !before) {
      to.write(data)
      return
    }
    const delayed = wait(this.delayMs)
    const passed = Promise.all([before, delayed]).then(() => {
      to.write(data)
      if (this.#passed.get(to) === passed) this.#passed.delete(to)
    })
    this.#passed.set(to, passed)
  }

  breakConnections(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  close(): void {
    this.#server.close()
    this.breakConnections()
  }
}
