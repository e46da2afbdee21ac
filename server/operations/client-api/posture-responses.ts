// The operations by which clients report about their machines.
import { acceptPostureResponses } from '../../../src/access/posture/accept-posture-responses.ts'
import { acceptedResponses, postureResponseTypes } from '../../../src/definitions/resources/posture-responses.ts'
import { f } from '../../../src/definitions/schema/fields.ts'
import type { PostureResponse } from '../../../src/policy/posture/posture-responses.ts'
import { type AnyOperation, type Call, defineOperation } from '../../api/operation.ts'
import { dataResponse } from '../../api/responses.ts'
import { readVariantBodies, readVariantBody } from '../../openapi/variant-bodies.ts'
import { requireApiSessionId } from '../both-apis/current-api-session.ts'
import { requireIdentityId } from '../both-apis/current-identity.ts'

const common = {
  apis: ['client'],
  topic: 'posture-checks',
  method: 'POST',
  access: { permission: 'posture-response.create', grantedTo: 'authenticated' },
  bodyLimit: 'limits.postureBody',
} as const

const shapes = {
  discriminator: 'typeId',
  common: { id: f.text({ required: true, maxLength: 255, summary: 'The posture check that is responded to.' }) },
  variants: postureResponseTypes,
}

// More than the processes that a client is ever asked for.
const MAX_RESPONSES = 500

async function accept({ controller, context }: Call, responses: readonly PostureResponse[]) {
  const { access, entities, auth, posture } = controller
  const reporter = { identityId: requireIdentityId(context), apiSessionId: requireApiSessionId(context) }
  const services = await acceptPostureResponses(
    { access, entities, sessions: auth.apiSessions, posture: posture.reported },
    context,
    reporter,
    responses,
  )
  return { services }
}

export const postureResponseOperations: readonly AnyOperation[] = [
  defineOperation<PostureResponse>({
    ...common,
    id: 'createPostureResponse',
    path: '/posture-response',
    summary: 'Reports the state of the machine for one posture check, and shows the services that this changes.',
    body: readVariantBody<PostureResponse>(shapes),
    returns: { kind: 'data', schema: acceptedResponses, isNew: true },
    run: async (call) => dataResponse(await accept(call, [call.body]), { status: 201 }),
  }),
  defineOperation<readonly PostureResponse[]>({
    ...common,
    id: 'createPostureResponseBulk',
    path: '/posture-response-bulk',
    summary: 'Reports the state of the machine for several posture checks, all of them or none.',
    body: readVariantBodies<PostureResponse>(shapes, MAX_RESPONSES),
    returns: { kind: 'data', schema: acceptedResponses },
    run: async (call) => dataResponse(await accept(call, call.body)),
  }),
]
