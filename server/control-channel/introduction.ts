// Tells a router that found one controller by the name of all where each of them is, and lets it connect to them.
import type { Socket } from 'node:net'
import type { ControllerAnnouncement } from '../../src/network/routers/router-connection.ts'
import { encodeAnnouncement } from './announcements.ts'
import { encodeHelloResponse, type GroupedConnection } from './hello.ts'
import { encodeMessage } from './message.ts'

// No controller has it. A router ends the connection to one that is not in the list, and connects to those that are.
const NO_CONTROLLER = 'shared'

// The router ends the connection itself.
const TIMEOUT_MS = 10_000

/** Responds to the hello of a router, and serves nothing else. */
export function introduceControllers(
  socket: Socket,
  grouped: GroupedConnection,
  announcement: ControllerAnnouncement,
): void {
  const { type, body, headers } = encodeAnnouncement(announcement, 'grouped')
  const list = encodeMessage({ type, sequence: 1, headers: new Map(headers), body: Buffer.from(body) })
  socket.write(Buffer.concat([encodeHelloResponse(NO_CONTROLLER, grouped), list]))
  const timeout = setTimeout(() => socket.destroy(), TIMEOUT_MS).unref()
  socket.on('close', () => clearTimeout(timeout)).resume()
}
