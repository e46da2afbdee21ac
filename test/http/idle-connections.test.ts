// Connections between requests: what the server still keeps of the last one.
import { once } from 'node:events'
import { Agent, createServer, get, type IncomingMessage, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { getConnection, type HttpConnection } from '../../server/connections/http-connection.ts'
import { OpenConnections } from '../../server/connections/open-connections.ts'
import { serveInOrder } from '../../server/connections/request-order.ts'

describe('an idle connection', () => {
  const agent = new Agent({ keepAlive: true })
  const openConnections = new OpenConnections()
  let server: Server
  let connection: HttpConnection
  let closed: Promise<unknown>

  beforeEach(async () => {
    const serve: RequestListener = (request, response) => {
      openConnections.beginResponse(response)
      connection = getConnection(request.socket)
      closed = once(response, 'close')
      response.end('served')
    }
    server = createServer((request, response) => serveInOrder(request, response, serve))
    await once(server.listen(0, '127.0.0.1'), 'listening')
  })
  afterEach(() => {
    agent.destroy()
    server.close()
  })

  it('keeps neither the last request nor its response', async () => {
    const { port } = server.address() as AddressInfo

    const [response] = (await once(get({ host: '127.0.0.1', port, agent }), 'response')) as [IncomingMessage]
    await once(response.resume(), 'end')
    await closed

    expect(connection.latestResponse).toBeUndefined()
    expect(connection.runningResponse).toBeUndefined()
  })
})
