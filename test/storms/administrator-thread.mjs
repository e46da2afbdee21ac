// An administrator at work while a controller is attacked, in a thread of its own so that the attack does not slow it
// down. Plain JavaScript, because threads of Node 20 read nothing else.
import { Agent, request } from 'node:https'
import { parentPort, workerData } from 'node:worker_threads'

const READ_EVERY_MS = 25
const WRITE_EVERY_MS = 200

const { url, rootPem, management, credentials } = workerData

/** Sends requests one after the other over one connection, as `token` once there is one. */
function openConnection() {
  const agent = new Agent({ ca: rootPem, keepAlive: true, maxSockets: 1 })
  let token
  const send = (method, path, body) =>
    new Promise((resolve, reject) => {
      const headers = {
        ...(token === undefined ? {} : { 'net-session': token }),
        ...(body ? { 'content-type': 'application/json' } : {}),
      }
      const outgoing = request(new URL(management + path, url), { method, agent, headers }, (response) => {
        const chunks = []
        response.on('data', (chunk) => chunks.push(chunk))
        response.on('error', reject)
        response.on('end', () => resolve({ status: response.statusCode, text: Buffer.concat(chunks).toString() }))
      })
      outgoing.on('error', reject)
      outgoing.end(body && JSON.stringify(body))
    })
  return {
    send,
    async signIn() {
      token = JSON.parse((await send('POST', '/authenticate?method=password', credentials)).text).data.token
    },
    close: () => agent.destroy(),
  }
}

/** Calls `work` at fixed times, whether or not earlier calls have ended, until told to stop; then waits for all of them. */
function repeat(everyMs, work) {
  const running = new Set()
  const startedAt = performance.now()
  let count = 0
  const timer = setInterval(() => {
    // A timer may be late, and a time counts from when the request was due: waiting is part of it.
    for (; startedAt + count * everyMs <= performance.now(); count++) {
      const one = work(startedAt + count * everyMs, count).finally(() => running.delete(one))
      running.add(one)
    }
  }, everyMs)
  return async () => {
    clearInterval(timer)
    await Promise.all(running)
  }
}

const reader = openConnection()
const writer = openConnection()
await Promise.all([reader.signIn(), writer.signIn()])

const durationsMs = []
const failedReads = []
const acknowledged = []
const writeStatuses = []

const stopReading = repeat(READ_EVERY_MS, async (dueAt) => {
  try {
    const { status, text } = await reader.send('GET', '/identities?limit=10')
    durationsMs.push(performance.now() - dueAt)
    if (status !== 200) failedReads.push(text)
  } catch (error) {
    failedReads.push(String(error))
  }
})
const stopWriting = repeat(WRITE_EVERY_MS, async (_dueAt, count) => {
  const name = `written ${count}`
  const answer = await writer.send('POST', '/services', { name, encryptionRequired: true }).catch(() => undefined)
  writeStatuses.push(answer?.status ?? 0)
  if (answer?.status === 201) acknowledged.push(name)
})

parentPort.once('message', async () => {
  await Promise.all([stopReading(), stopWriting()])
  reader.close()
  writer.close()
  parentPort.postMessage({ durationsMs, failedReads, acknowledged, writeStatuses })
})
parentPort.postMessage('works')
