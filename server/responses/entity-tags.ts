// Entity tags (RFC 9110, section 8.8.3): a client that has a response already is told so, instead of receiving it again.
//
// A digest costs a tenth of a list. Responses that show secrets (`isConfidential`) have no tag, and `Cache-Control:
// no-store`.

import { hash } from 'node:crypto'
import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { BodyParts } from '../api/large-bodies.ts'
import type { Response } from '../api/responses.ts'

/** The tags of bodies that stay in memory. */
const tagsOfBodies = new WeakMap<Buffer, string>()

/**
 * Responds with 304 and without a body, if the client named the tag of the response; otherwise sets the tag, and returns undefined.
 * Only documents, and responses to requests with If-None-Match, have tags, because most clients use none, and a tag costs a digest
 * of the body: a client that wants one and has none yet names the tag `""`. It is called after the operation has run, as for every
 * other response: the operation has checked all rights, and the tag depends on every byte.
 */
export function respondIfCurrent(
  request: FastifyRequest,
  reply: FastifyReply,
  { status, body, headers, isShared }: Response,
): FastifyReply | undefined {
  const namedTags = request.headers['if-none-match']
  if (status !== 200 || request.method !== 'GET' || (namedTags === undefined && !isShared)) return undefined
  if (body instanceof Readable || headers?.['cache-control'] === 'no-store') return undefined
  const tag = body instanceof Buffer ? findTag(body) : toTag(body instanceof BodyParts ? body.join() : body)
  reply.header('etag', tag).header('cache-control', isShared ? 'no-cache' : 'private, no-cache')
  if (namedTags === undefined || !includesTag(namedTags, tag)) return undefined
  if (headers?.vary) reply.header('vary', headers.vary)
  return reply.code(304).send()
}

function findTag(body: Buffer): string {
  let tag = tagsOfBodies.get(body)
  if (tag === undefined) {
    tag = toTag(body)
    tagsOfBodies.set(body, tag)
  }
  return tag
}

function toTag(body: string | Buffer): string {
  return `"${hash('sha256', body, 'base64url')}"`
}

/** Whether a tag is one of a list, in the weak comparison. Tags of this controller contain no commas. */
function includesTag(list: string, tag: string): boolean {
  return list.split(',').some((entry) => {
    const named = entry.trim()
    return named === '*' || named === tag || named === `W/${tag}`
  })
}
