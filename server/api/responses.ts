// The responses of operations: the envelope of the APIs, and the few responses without it.
import type { Readable } from 'node:stream'
import type { WebSocket } from 'ws'
import { EMPTY_OR_NULL, type JsonForm, toForm } from '../../src/definitions/schema/json-forms.ts'
import type { Window } from '../../src/storage/lists/lists.ts'
import { toJsonText } from '../../src/storage/records/raw-json.ts'
import { type BodyParts, toBody } from './large-bodies.ts'

/** A response: a body as text, bytes or stream, with a status and a content type. */
export interface Response {
  readonly status: number
  readonly contentType: string
  readonly body: string | Buffer | BodyParts | Readable
  readonly headers?: Readonly<Record<string, string>>
  /** In place of a body: the connection goes on as a WebSocket, which this is called with. */
  readonly beginWebSocket?: (webSocket: WebSocket) => void
  /** Every caller is sent the same bytes, which stay in memory anyway. */
  readonly isShared?: boolean
}

/** Keeps browsers from taking a response for another type of content, such as a script. */
export const CONTENT_HEADERS: Readonly<Record<string, string>> = { 'x-content-type-options': 'nosniff' }

const JSON_TYPE = 'application/json'
const VERSIONS = '"apiEnrollmentVersion":"0.0.1","apiVersion":"0.0.1"'

/** The versions that stand in the meta of every envelope. */
export const ENVELOPE_VERSIONS = { apiEnrollmentVersion: '0.0.1', apiVersion: '0.0.1' } as const

const EMPTY_RESPONSE: Response = makeResponse(200, '{}')

function makeResponse(status: number, data: string, headers?: Response['headers']): Response {
  const body = `{"data":${data},"meta":{${VERSIONS}}}\n`
  return headers ? { status, contentType: JSON_TYPE, body, headers } : { status, contentType: JSON_TYPE, body }
}

// The meta is the last member of every envelope.
const ENVELOPE_END = '}}\n'

/** The response with a warning in the meta of its envelope for each member of the request that was ignored. */
export function withWarnings(response: Response, ignoredMembers: readonly string[]): Response {
  const { body } = response
  if (ignoredMembers.length === 0 || typeof body !== 'string') return response
  const warnings = ignoredMembers.map((field) => ({ field, reason: 'is not known here, and was ignored' }))
  const envelope = body.slice(0, -ENVELOPE_END.length)
  return { ...response, body: `${envelope},"warnings":${JSON.stringify(warnings)}${ENVELOPE_END}` }
}

/** The envelope without content, for changes. */
export function emptyResponse(): Response {
  return EMPTY_RESPONSE
}

/** The work of the operation has begun, and goes on. */
export function acceptedResponse(): Response {
  return makeResponse(202, '{}')
}

/** A value that shows all of `total` results. */
export function allResultsResponse(value: unknown, total: number): Response {
  const meta = renderListMeta({ limit: 'none', offset: 0, total }, '[]')
  return { status: 200, contentType: JSON_TYPE, body: `{"data":${toJsonText(value)},${meta}}\n` }
}

/** One record or value; text that is JSON already comes as `RawJson`. */
export function dataResponse(
  value: unknown,
  { status = 200, headers }: { status?: number; headers?: Response['headers'] } = {},
): Response {
  return makeResponse(status, toJsonText(value), headers)
}

/** A record was made. */
export function createdResponse(plural: string, id: string): Response {
  return makeResponse(201, `{"_links":{"self":{"href":"./${plural}/${id}"}},"id":${JSON.stringify(id)}}`)
}

/** A page of records, each as JSON text, in one member of `data`. */
export function listUnder(
  member: string,
  records: readonly string[],
  page: Window,
  filterableFields: string,
  form: JsonForm,
): Response {
  const list = records.length === 0 ? toForm(EMPTY_OR_NULL, form) : `[${records.join(',')}]`
  const body = `{"data":{"${member}":${list}},${renderListMeta(page, filterableFields)}}\n`
  return { status: 200, contentType: JSON_TYPE, body }
}

/** A page of values or records, each as JSON text, or all of them as pieces of bytes with their commas. */
export function listResponse(
  records: readonly string[] | readonly Buffer[],
  page: Window,
  filterableFields: string,
): Response {
  const tail = `],${renderListMeta(page, filterableFields)}}\n`
  const body = isBytes(records)
    ? toBody([LIST_HEAD, ...records, Buffer.from(tail)])
    : `{"data":[${records.join(',')}${tail}`
  return { status: 200, contentType: JSON_TYPE, body }
}

const LIST_HEAD = Buffer.from('{"data":[')

function isBytes(records: readonly string[] | readonly Buffer[]): records is readonly Buffer[] {
  return typeof records[0] === 'object'
}

/** The meta of a list; a list without a limit reports −1. */
export function renderListMeta({ limit, offset, total }: Window, filterableFields: string): string {
  const shownLimit = limit === 'none' ? -1 : limit
  const pagination = `"pagination":{"limit":${shownLimit},"offset":${offset},"totalCount":${total}}`
  return `"meta":{${VERSIONS},"filterableFields":${filterableFields},${pagination}}`
}

/** The connection goes on as a WebSocket. */
export function webSocketResponse(begin: NonNullable<Response['beginWebSocket']>): Response {
  return { status: 101, contentType: '', body: '', beginWebSocket: begin }
}

/** Something without an envelope. */
export function rawResponse(
  contentType: string,
  body: string | Buffer | Readable,
  headers?: Response['headers'],
): Response {
  return { status: 200, contentType, body, ...(headers ? { headers } : {}) }
}

/** A document that is the same for every caller. */
export function document(contentType: string, body: Buffer, headers?: Response['headers']): Response {
  return { ...rawResponse(contentType, body, headers), isShared: true }
}
