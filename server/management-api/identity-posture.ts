// What the machines of an identity reported of themselves, and what it was refused because of that.
import { identities, sdkInfoSchema } from '../../src/resources/identities.ts'
import { flag, type JsonSchema, listOf, objectOf, text, time } from '../../src/schema/json-schema.ts'
import { type AnyOperation, defineOperation } from '../operation.ts'
import { requireRow } from '../resource-operations.ts'
import { dataResponse } from '../responses.ts'

const common = {
  apis: ['management'],
  topic: 'identities',
  method: 'GET',
  access: { permission: 'identity.read', grantedTo: 'administrator' },
} as const

const failure = objectOf({
  when: time,
  apiSessionId: text,
  serviceId: text,
  serviceName: text,
  sessionType: { type: 'string', enum: ['Dial', 'Bind'] },
  policyFailures: listOf(
    objectOf({
      policyId: text,
      policyName: text,
      checks: listOf(objectOf({ postureCheckId: text, postureCheckName: text, postureCheckType: text })),
    }),
  ),
})

const reported = (members: Readonly<Record<string, JsonSchema>>) =>
  objectOf({ postureCheckId: text, timedOut: flag, lastUpdatedAt: { ...time, nullable: true }, ...members })

/** What a machine that has reported nothing has no value of. */
const unreported: JsonSchema = { ...text, nullable: true }

const ofApiSession = objectOf({
  mfa: objectOf({ apiSessionId: text, passedAt: time, passedMfa: flag, passedOnWake: flag, passedOnUnlock: flag }),
  endpointState: objectOf({ wokenAt: time, unlockedAt: time }),
  sdkInfo: sdkInfoSchema,
})

const postureData = objectOf({
  apiSessionPostureData: { type: 'object', additionalProperties: ofApiSession },
  domain: reported({ domain: unreported }),
  mac: reported({ addresses: listOf(text) }),
  os: reported({ type: unreported, version: unreported, build: unreported }),
  processes: listOf(reported({ binaryHash: text, isRunning: flag, signerFingerprints: listOf(text) })),
})

/** What there is to say of an identity's machine as long as it has reported nothing. */
const NO_REPORT = { lastUpdatedAt: null, postureCheckId: '', timedOut: false } as const
const NO_POSTURE_DATA = {
  apiSessionPostureData: {},
  domain: { ...NO_REPORT, domain: null },
  mac: { ...NO_REPORT, addresses: [] },
  os: { ...NO_REPORT, build: null, type: null, version: null },
  processes: [],
} as const

export const identityPostureOperations: readonly AnyOperation[] = [
  defineOperation({
    ...common,
    id: 'getIdentityFailedServiceRequests',
    path: '/identities/:id/failed-service-requests',
    summary: 'Lists the latest sessions that an identity was refused because of posture checks.',
    incomplete: 'lists none, because posture checks are not evaluated',
    returns: { kind: 'data', schema: listOf(failure) },
    async run({ context, params }) {
      await requireRow(context, identities, params.id)
      return dataResponse([])
    },
  }),
  defineOperation({
    ...common,
    id: 'getIdentityPostureData',
    path: '/identities/:id/posture-data',
    summary: 'Shows what the machines of an identity have reported about themselves.',
    incomplete: 'shows none, because reports are not accepted',
    returns: { kind: 'data', schema: postureData },
    async run({ context, params }) {
      await requireRow(context, identities, params.id)
      return dataResponse(NO_POSTURE_DATA)
    },
  }),
]
