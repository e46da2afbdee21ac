// The order in which requests are judged: of two things that are wrong with a request, the earlier one is told.
import { beforeAll, describe, expect, it } from 'vitest'
import type { Request } from '../../src/client/transport.ts'
import { CLIENT, MANAGEMENT } from '../world/controller.ts'
import { rawTarget, sendRaw } from '../world/raw-requests.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
let administrator: string
let userToken: string

beforeAll(async () => {
  administrator = await world.admin()
  userToken = (await world.signIn()).token
})

const JSON_TYPE = { 'content-type': 'application/json' }
const LARGE = 'x'.repeat(1024 * 1024 + 1)

interface Judged {
  readonly status: number
  readonly code: string
  /** The field or the code of the cause. */
  readonly cause?: string | undefined
}

async function judge(request: Request & { token?: string }): Promise<Judged> {
  const { status, body } = await world.send(request)
  const { code, cause } = body.error
  return { status, code, ...(cause ? { cause: cause.field ?? cause.code } : {}) }
}

const tooLarge = { status: 413, code: 'REQUEST_ENTITY_TOO_LARGE' }
const headersTooLarge = { status: 431, code: 'REQUEST_HEADER_FIELDS_TOO_LARGE' }
const notFound = { status: 404, code: 'NOT_FOUND' }
const methodNotAllowed = { status: 405, code: 'METHOD_NOT_ALLOWED' }
const noSession = { status: 401, code: 'UNAUTHORIZED', cause: 'SESSION_MISSING' }
const denied = { status: 401, code: 'UNAUTHORIZED', cause: 'PERMISSION_DENIED' }
const wrongType = { status: 415, code: 'COULD_NOT_VALIDATE', cause: 'Content-Type' }
const notAcceptable = { status: 406, code: 'COULD_NOT_VALIDATE', cause: 'Accept' }
const wrongParameter = { status: 400, code: 'COULD_NOT_VALIDATE', cause: 'token' }

describe('of two neighbours in the order of checks the first one decides:', () => {
  it('headers that are too large, then a path that does not exist', async () => {
    const { url, rootPem } = await world.listen()
    const filler = `filler: ${'x'.repeat(20_000)}`

    const { status, text } = await sendRaw(
      rawTarget(url, rootPem),
      `GET ${MANAGEMENT}/no-such-path HTTP/1.1\r\nhost: x\r\n${filler}\r\n\r\n`,
    )

    expect({ status, code: JSON.parse(text).error.code }).toEqual(headersTooLarge)
  })

  it('a body that is too large, then a path that does not exist', async () => {
    const request = { method: 'POST', body: LARGE, headers: JSON_TYPE }

    expect(await judge({ ...request, path: `${MANAGEMENT}/no-such-path` })).toEqual(tooLarge)
    expect(await judge({ ...request, path: `${MANAGEMENT}/no-such-path`, token: administrator })).toEqual(tooLarge)
  })

  it('a body that is too large, then a method that does not exist', async () => {
    const request = { method: 'PUT', path: `${MANAGEMENT}/identities`, body: LARGE, headers: JSON_TYPE }

    expect(await judge(request)).toEqual(tooLarge)
  })

  it('a body that is too large, then a missing session', async () => {
    const body = 'x'.repeat(64 * 1024 + 1)
    const request = { method: 'POST', path: `${MANAGEMENT}/identities`, body, headers: JSON_TYPE }

    expect(await judge(request)).toEqual(tooLarge)
    expect(await judge({ ...request, body: body.slice(1) })).toMatchObject(noSession)
  })

  it('a path that does not exist, then a missing session', async () => {
    expect(await judge({ method: 'GET', path: `${MANAGEMENT}/no-such-path` })).toMatchObject(notFound)
  })

  it('a method that does not exist, then a missing session', async () => {
    expect(await judge({ method: 'PUT', path: `${MANAGEMENT}/identities` })).toMatchObject(methodNotAllowed)
  })

  it('a missing session, then a missing right', async () => {
    expect(await judge({ method: 'GET', path: `${MANAGEMENT}/identities` })).toEqual(noSession)
    expect(await judge({ method: 'GET', path: `${MANAGEMENT}/identities`, token: userToken })).toEqual(denied)
  })

  it('a missing right, then a content type', async () => {
    const request = { method: 'POST', path: `${MANAGEMENT}/identities`, body: 'a', headers: { 'content-type': 'a/b' } }

    expect(await judge({ ...request, token: userToken })).toEqual(denied)
    expect(await judge({ ...request, token: administrator })).toEqual(wrongType)
  })

  it('a content type, then a form that does not exist', async () => {
    const headers = { 'content-type': 'text/plain', accept: 'text/html' }

    expect(
      await judge({ method: 'POST', path: `${MANAGEMENT}/identities`, token: administrator, body: 'a', headers }),
    ).toEqual(wrongType)
  })

  it('a content type, then a parameter', async () => {
    const path = `${CLIENT}/enroll/updb?token=no-uuid`

    expect(await judge({ method: 'POST', path, body: 'a', headers: { 'content-type': 'text/plain' } })).toEqual(
      wrongType,
    )
    expect(await judge({ method: 'POST', path, body: 'a', headers: { 'content-type': 'a/b' } })).toEqual(wrongType)
  })

  it('a content coding, then a parameter', async () => {
    const headers = { ...JSON_TYPE, 'content-encoding': 'gzip' }

    expect(await judge({ method: 'POST', path: `${CLIENT}/enroll/updb?token=no-uuid`, body: '{}', headers })).toEqual({
      ...wrongType,
      cause: 'Content-Encoding',
    })
  })

  it('a form that does not exist, then a parameter', async () => {
    const path = `${MANAGEMENT}/identities?limit=many`
    const get = { method: 'GET', path, token: administrator }

    expect(await judge({ ...get, headers: { accept: 'text/html' } })).toEqual(notAcceptable)
    expect(await judge(get)).toMatchObject({ status: 400, cause: 'limit' })
  })

  it('a parameter, then JSON', async () => {
    const request = { method: 'POST', path: `${CLIENT}/enroll/updb?token=no-uuid`, headers: JSON_TYPE }

    expect(await judge({ ...request, body: '{ this is not json' })).toEqual(wrongParameter)
  })

  it('JSON, then the schema', async () => {
    const request = { method: 'POST', path: `${MANAGEMENT}/identities`, token: administrator, headers: JSON_TYPE }

    expect(await judge({ ...request, body: '{"name":5,' })).toMatchObject({ status: 400, code: 'COULD_NOT_PARSE_BODY' })
    expect((await judge({ ...request, body: '{"name":5,' })).cause).not.toBe('name')
  })

  it('the schema, then the rules', async () => {
    const request = { method: 'POST', path: `${MANAGEMENT}/identities`, token: administrator }
    const body = { name: 'x', type: 'Device', isAdmin: 'no', authPolicyId: 'no-such-policy' }

    expect(await judge({ ...request, body })).toMatchObject({ status: 400, cause: 'isAdmin' })
    expect(await judge({ ...request, body: { ...body, isAdmin: false } })).not.toMatchObject({ cause: 'isAdmin' })
  })
})
