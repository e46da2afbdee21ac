// The log: its level at run time, a line for each request if asked for, and its form for people.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createLogText } from '../../server/logging/log-text.ts'
import { cleanEnvironment } from '../world/binary.ts'
import { commandLine } from '../world/command-line.ts'
import { CLIENT, copyOfTemplate, MANAGEMENT, type TestController, testController } from '../world/controller.ts'
import { writeProfiles } from '../world/profiles.ts'
import { type RecordingLog, recordingLog } from '../world/recording-log.ts'

const LEVEL = `${MANAGEMENT}/controller/log/level`

let world: TestController
let log: RecordingLog
let token: string

beforeAll(async () => {
  log = recordingLog()
  world = await testController({ log, settings: { 'log.requests': true } })
  token = await world.admin()
})
afterAll(() => world.close())

describe('the level of the log', () => {
  it('changes at run time, and the audit says who changed it', async () => {
    const changed = await world.send({ method: 'PUT', path: LEVEL, token, body: { level: 'warn' } })
    const current = await world.send({ method: 'GET', path: LEVEL, token })
    const audit = await world.send({ method: 'GET', path: `${MANAGEMENT}/controller/audit?limit=1`, token })

    expect([changed.status, changed.body.data, current.body.data]).toEqual([200, { level: 'warn' }, { level: 'warn' }])
    expect(log.level).toBe('warn')
    expect(audit.body.data[0]).toMatchObject({
      resource: 'log-level',
      operation: 'update',
      actorKind: 'identity',
      before: { level: 'debug' },
      after: { level: 'warn' },
    })
    const verified = await world.send({ method: 'GET', path: `${MANAGEMENT}/controller/audit/verify`, token })
    expect(verified.body.data.isWhole).toBe(true)
  })

  it('is one of five', async () => {
    const { status, body } = await world.send({ method: 'PUT', path: LEVEL, token, body: { level: 'loud' } })

    expect([status, body.error.cause.field]).toEqual([400, 'level'])
  })

  it('changes by a command', async () => {
    const env = cleanEnvironment()
    const { url, rootPem } = await world.listen()
    writeProfiles(env, { test: { url, rootPem, token } })
    const run = (...words: string[]) => commandLine(['log', 'level', ...words, '--profile', 'test'], env)

    expect(await run('error')).toMatchObject({ code: 0, stdout: expect.stringContaining('error') })
    expect(await run('-o', 'json')).toMatchObject({ code: 0, stdout: expect.stringContaining('"level": "error"') })
    expect(log.level).toBe('error')
    const offline = ['log', 'level', '--offline', '--data-dir', copyOfTemplate()]
    expect(await commandLine(offline, env)).toMatchObject({ code: 2, stderr: expect.stringContaining('running') })
  })
})

describe('a line for each request', () => {
  const findLine = async (path: string) => {
    const lines = () => log.lines.filter(({ message, fields }) => message === 'request' && fields.path === path)
    await expect.poll(() => lines().length).toBeGreaterThan(0)
    return lines().at(-1)?.fields ?? {}
  }

  it('says what was asked, by whom, and the outcome', async () => {
    const { id, token: userToken } = await world.signIn({ name: 'a user' })
    await world.send({ method: 'GET', path: `${CLIENT}/services?limit=5`, token: userToken })

    expect(await findLine(`${CLIENT}/services`)).toMatchObject({
      method: 'GET',
      operation: 'listServices',
      status: 200,
      address: '127.0.0.1',
      identityId: id,
      durationMs: expect.any(Number),
      requestId: expect.any(String),
    })
  })

  it('leaves out the query, which can hold tokens', async () => {
    await world.send({ method: 'POST', path: `${CLIENT}/enroll/ott?token=secret-token`, body: {} })

    expect(JSON.stringify(await findLine(`${CLIENT}/enroll/ott`))).not.toContain('secret-token')
  })

  it('is written for refused requests, too', async () => {
    await world.send({ method: 'GET', path: `${MANAGEMENT}/no-such-path` })

    expect(await findLine(`${MANAGEMENT}/no-such-path`)).toMatchObject({ status: 404 })
  })

  it('is not written without the setting', async () => {
    const other = recordingLog()
    const quiet = await testController({ log: other })
    await quiet.send({ method: 'GET', path: '/version' })
    await quiet.close()

    expect(other.lines.filter(({ message }) => message === 'request')).toEqual([])
  })
})

describe('the log as text', () => {
  function write(fields: object): string {
    const lines: string[] = []
    const text = createLogText({ write: (line) => lines.push(line) > 0 }, false)
    text.write(`${JSON.stringify({ level: 30, time: 0, pid: 1, host: 'h', ...fields })}\n`)
    return lines.join('')
  }

  it('is a line with time, level, message and fields', () => {
    expect(write({ msg: 'listening', addresses: ['127.0.0.1:1280'] })).toMatch(
      /^\[\d\d:\d\d:\d\d\.\d{3}\] INFO: listening \{"addresses":\["127\.0\.0\.1:1280"\]\}\n$/,
    )
  })

  it('shows where an error came from', () => {
    const err = { type: 'Error', message: 'broken', stack: 'Error: broken\n    at here (file.ts:1:1)' }

    expect(write({ level: 50, msg: 'a request failed', err })).toContain('at here (file.ts:1:1)')
  })

  it.each(['\u001b[31m', '\u009b31m', '\u0007', '\r', '\u0000', '\u202e', '\u2066', '\u2028'])(
    'escapes the control characters of %j',
    (text) => {
      const line = write({ msg: `by ${text}`, path: text, err: { type: 'Error', message: text, stack: text } })

      expect(line).not.toContain(text)
    },
  )

  it('does not turn an escape that a client wrote into the character', () => {
    expect(write({ msg: 'by \\u001b[31m' })).toContain('by \\u001b[31m')
  })
})
