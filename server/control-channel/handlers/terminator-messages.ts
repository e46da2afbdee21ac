// Messages by which routers make, change and remove the terminators of the hosts connected to them.
import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import { RequestRefusedError } from '../../../src/network/client-requests/request-refused.ts'
import type { SessionClient } from '../../../src/network/client-requests/session-client.ts'
import type { TerminatorQuestion } from '../../../src/network/routers/router-connection.ts'
import type { Protocol } from '../announcements.ts'
import { ContentType } from '../content-types.ts'
import { INTERNAL_FAILURE, sendRefusal } from '../edge-errors.ts'
import { encodeInt32 } from '../header-values.ts'
import {
  RemoveTerminatorsRequestSchema,
  ValidateTerminatorsV2RequestSchema,
  ValidateTerminatorsV2ResponseSchema,
} from '../messages/control_pb.ts'
import {
  CreateTerminatorResult,
  type CreateTerminatorV2Request,
  CreateTerminatorV2RequestSchema,
  CreateTerminatorV2ResponseSchema,
  type UpdateTerminatorRequest,
  UpdateTerminatorRequestSchema,
} from '../messages/edge_pb.ts'
import { toFailedResult } from '../terminator-results.ts'
import { parsePeerData, parsePrecedence } from '../terminator-values.ts'
import { type MessageHandlers, refuseByError, refuseByResult, requireAtMost, withBody } from './message-handler.ts'

// Routers remove at most fifty terminators by a message, and respond about as many as they are asked about.
const MAX_REMOVED = 1_000
const MAX_STATES = 10_000
const REMOVED_PER_TRANSACTION = 100

/** In the result of a request that is refused at this moment only. */
const RATE_LIMITED = [10, encodeInt32(1)] as const

/**
 * Requests about terminators. Reports of health checks are dropped: a host that draws a conclusion from them changes the precedence
 * or the cost of its terminator itself.
 */
export const terminatorHandlers: MessageHandlers = [
  [ContentType.CREATE_TERMINATOR, refuseByResult],
  [ContentType.REMOVE_TERMINATOR, refuseByResult],
  [ContentType.UPDATE_TERMINATOR, refuseByResult],
  [ContentType.CREATE_EDGE_TERMINATOR, refuseByError],
  [ContentType.REMOVE_EDGE_TERMINATOR, refuseByError],
  [
    ContentType.CREATE_TERMINATOR_V2_REQUEST,
    withBody(CreateTerminatorV2RequestSchema, async ({ controller, router, channel }, request, message) => {
      const { address, cost, instanceId, instanceSecret } = request
      const respond = (outcome: MessageInitShape<typeof CreateTerminatorV2ResponseSchema>) => {
        const response = create(CreateTerminatorV2ResponseSchema, { terminatorId: address, ...outcome })
        const body = toBinary(CreateTerminatorV2ResponseSchema, response)
        channel.send(ContentType.CREATE_TERMINATOR_V2_RESPONSE, body, { replyTo: message })
      }
      const { contexts, fabric } = controller
      const system = contexts.create({ kind: 'system' })
      try {
        const precedence = parsePrecedence(request.precedence)
        const hosted = { id: address, binding: 'edge', cost, precedence, instanceId, instanceSecret } as const
        const peerData = parsePeerData(request.peerData)
        await fabric.hosted.create(system, toSessionClient(router.id, request), { ...hosted, peerData })
        fabric.validation.confirm(router, address)
        respond({ result: CreateTerminatorResult.Success })
      } catch (error) {
        if (!(error instanceof RequestRefusedError)) {
          respond(toFailedResult(INTERNAL_FAILURE, router))
          throw error
        }
        // The host is told why; one that tries again and again must not fill the log.
        controller.log.debug(
          { routerId: router.id, terminatorId: address, reason: error.message },
          'a bind was refused',
        )
        respond(toFailedResult(error, router))
      }
    }),
  ],
  [
    ContentType.UPDATE_EDGE_TERMINATOR_REQUEST,
    withBody(UpdateTerminatorRequestSchema, async ({ controller, router, channel }, request, message) => {
      const { terminatorId, cost, updateCost, precedence, updatePrecedence } = request
      const system = controller.contexts.create({ kind: 'system' })
      try {
        await controller.fabric.hosted.update(system, toSessionClient(router.id, request), terminatorId, {
          cost: updateCost ? cost : undefined,
          precedence: updatePrecedence ? parsePrecedence(precedence) : undefined,
        })
        channel.send(ContentType.UPDATE_EDGE_TERMINATOR_RESPONSE, undefined, { replyTo: message })
      } catch (error) {
        if (!(error instanceof RequestRefusedError)) throw error
        sendRefusal(channel, message, error)
      }
    }),
  ],
  [
    ContentType.REMOVE_TERMINATORS,
    withBody(RemoveTerminatorsRequestSchema, async ({ controller, router, channel }, { terminatorIds }, message) => {
      requireAtMost(MAX_REMOVED, terminatorIds, 'terminators')
      const system = controller.contexts.create({ kind: 'system' })
      try {
        await controller.fabric.hosted.remove(system, router.id, terminatorIds)
        channel.sendResult(message, true)
      } catch (error) {
        if (!(error instanceof RequestRefusedError)) throw error
        channel.sendResult(message, false, error.message, [RATE_LIMITED])
      }
    }),
  ],
  [
    ContentType.VALIDATE_TERMINATORS_V2_RESPONSE,
    withBody(ValidateTerminatorsV2ResponseSchema, async ({ controller, router }, response) => {
      const states = Object.entries(response.states)
      requireAtMost(MAX_STATES, states, 'terminators')
      const { contexts, fabric, log } = controller
      const invalidIds = fabric.validation.receive(
        router,
        states.map(([id, { valid, marker }]) => ({ id, isValid: valid, marker })),
      )
      if (invalidIds.length === 0) return
      log.info({ routerId: router.id, terminators: invalidIds.length }, 'a router does not have terminators any more')
      const system = contexts.create({ kind: 'system' })
      for (let at = 0; at < invalidIds.length; at += REMOVED_PER_TRANSACTION)
        await fabric.hosted.remove(system, router.id, invalidIds.slice(at, at + REMOVED_PER_TRANSACTION))
    }),
  ],
]

/** The client on whose behalf a router asks. */
function toSessionClient(
  routerId: string,
  { sessionToken: token, apiSessionToken, fingerprints }: CreateTerminatorV2Request | UpdateTerminatorRequest,
): SessionClient {
  return { routerId, token, apiSessionToken, fingerprints }
}

/** Renders the message by which a router of release 1 gives up a terminator that it has: a refusal of it, which it did not ask for. */
export function encodeTerminatorEnd(terminatorId: string): Uint8Array {
  const result = CreateTerminatorResult.FailedInvalidSession
  const response = create(CreateTerminatorV2ResponseSchema, { terminatorId, result, msg: 'the session has ended' })
  return toBinary(CreateTerminatorV2ResponseSchema, response)
}

/** Renders questions about terminators. The router gives up those that are not there. Of new ones, those of release 2 ask the host themselves. */
export function encodeTerminatorQuestions(
  terminators: readonly TerminatorQuestion[],
  protocol: Protocol,
): Uint8Array[] {
  const encode = (questions: readonly TerminatorQuestion[], postCreate: boolean) => {
    const about = questions.map(({ id, binding, address, marker }) => ({ id, binding, address, marker }))
    const request = create(ValidateTerminatorsV2RequestSchema, { terminators: about, fixInvalid: true, postCreate })
    return toBinary(ValidateTerminatorsV2RequestSchema, request)
  }
  if (protocol === 'single') return [encode(terminators, false)]
  const [created, others] = [terminators.filter(({ isNew }) => isNew), terminators.filter(({ isNew }) => !isNew)]
  return [...(created.length > 0 ? [encode(created, true)] : []), ...(others.length > 0 ? [encode(others, false)] : [])]
}
