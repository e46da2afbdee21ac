// Questions that administrators ask of posture: what a machine reported, which checks pass, and why not.
import { describePosture, testPostureCheck } from '../../../src/access/advice/posture-overview.ts'
import { identities } from '../../../src/definitions/resources/identities.ts'
import { postureChecks } from '../../../src/definitions/resources/posture-checks.ts'
import { notFoundError } from '../../../src/foundation/errors.ts'
import { type AnyOperation, defineOperation } from '../../api/operation.ts'
import { dataResponse } from '../../api/responses.ts'
import { requireRow } from '../../responses/record-responses.ts'
import { findNamedRoleBearer } from './policy-questions.ts'

const OWN = { apis: ['management'], topic: 'posture-checks', method: 'GET', isOwn: true } as const
const READ = { permission: 'identity.read', grantedTo: 'administrator' } as const

export const postureQuestionOperations: readonly AnyOperation[] = [
  defineOperation({
    ...OWN,
    id: 'describeIdentityPosture',
    path: '/controller/posture/identities/:identityId',
    summary: 'Shows what the machines of an identity reported, which posture checks pass, and why not.',
    access: READ,
    returns: { kind: 'data', schema: { type: 'object' } },
    async run({ controller, context, params }) {
      const row = await requireRow(context, identities, params.identityId)
      return dataResponse(await describePosture(controller.access, context, findNamedRoleBearer(row)))
    },
  }),
  defineOperation({
    ...OWN,
    id: 'testPostureCheck',
    path: '/controller/posture/checks/:postureCheckId/:identityId',
    summary: 'Shows what a posture check finds on the machines of an identity, whether a policy demands it or not.',
    access: READ,
    returns: { kind: 'data', schema: { type: 'object' } },
    async run({ controller, context, params }) {
      const { id, name } = await requireRow(context, postureChecks, params.postureCheckId)
      const identity = findNamedRoleBearer(await requireRow(context, identities, params.identityId))
      const check = controller.access.index.findPostureCheck(id)
      if (!check) throw notFoundError('posture check', id)
      const postureCheck = testPostureCheck(controller.access, check, name as string, identity)
      return dataResponse({ identity: { id: identity.id, name: identity.name }, postureCheck })
    },
  }),
]
