// The floor that nothing can go below: a bare node:https server that responds to every request with so many bytes, and checks a
// password first where it is told to. It has the controller's certificate and TLS settings, so that handshakes compare.
import { readFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { type PasswordContext, PasswordHasher } from '../../src/authentication/credentials/password-hasher.ts'

/** The responses of the server to the next requests. */
export interface FloorResponse {
  readonly bodyBytes: number
  readonly checksPassword: boolean
}

const PASSWORD = 'correct horse battery'

const [directory = ''] = process.argv.slice(2)
const passwords = new PasswordHasher(1_000)
const ANONYMOUS: PasswordContext = { caller: { kind: 'anonymous' }, origin: { requestId: '', address: undefined } }
let body = Buffer.alloc(0)
let passwordHash: string | undefined

const server = createServer(
  {
    key: readFileSync(join(directory, 'pki/server.key')),
    cert: readFileSync(join(directory, 'pki/server.crt')),
    minVersion: 'TLSv1.2',
    requestCert: true,
    rejectUnauthorized: false,
  },
  (request, response) => {
    request.on('data', () => {})
    request.on('end', () => void respond(response))
  },
)
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }))

async function respond(response: ServerResponse): Promise<void> {
  if (passwordHash !== undefined) await passwords.verify(passwordHash, PASSWORD, ANONYMOUS)
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length })
  response.end(body)
}

process.on('message', async ({ bodyBytes, checksPassword }: FloorResponse) => {
  body = Buffer.alloc(bodyBytes, 'x')
  passwordHash = checksPassword ? await passwords.hash(PASSWORD, ANONYMOUS) : undefined
  process.send?.({ isReady: true })
})
process.on('disconnect', () => process.exit())
