// Shows the posture that the machines of an identity reported, and the sessions that it was refused because of it.

import { identities, sdkInfoSchema } from '../../../src/definitions/resources/identities.ts'
import {
  flag,
  type JsonSchema,
  listOf,
  objectOf,
  requiredObject,
  text,
  time,
} from '../../../src/definitions/schema/json-schema.ts'
import { type Instant, toIsoTime } from '../../../src/foundation/clock.ts'
import {
  listProcesses,
  type MachineState,
  type MfaState,
  type StoredResponse,
} from '../../../src/policy/posture/machine-state.ts'
import { RawJson } from '../../../src/storage/records/raw-json.ts'
import { type AnyOperation, defineOperation } from '../../api/operation.ts'
import { dataResponse } from '../../api/responses.ts'
import { requireRow } from '../../responses/record-responses.ts'

const common = {
  apis: ['management'],
  topic: 'identities',
  method: 'GET',
  access: { permission: 'identity.read', grantedTo: 'administrator', records: 'identities' },
} as const

const failure = requiredObject({
  when: time,
  apiSessionId: text,
  serviceId: text,
  serviceName: text,
  sessionType: { type: 'string', enum: ['Dial', 'Bind'] },
  policyFailures: listOf(
    requiredObject({
      policyId: text,
      policyName: text,
      checks: listOf(
        requiredObject(
          {
            postureCheckId: text,
            postureCheckName: text,
            postureCheckType: text,
            // In the form of the check's type.
            actualValue: {},
            expectedValue: {},
            semantic: text,
            criteria: { type: 'object' },
          },
          ['actualValue', 'expectedValue', 'semantic', 'criteria'],
        ),
      ),
    }),
  ),
})

/** The members that have no value while a machine has reported nothing. */
const reportedText: JsonSchema = { ...text, nullable: true }
const reportedTime: JsonSchema = { ...time, nullable: true }

const reported = (members: Readonly<Record<string, JsonSchema>>, optional: readonly string[] = []) =>
  requiredObject({ postureCheckId: text, timedOut: flag, lastUpdatedAt: reportedTime, ...members }, optional)

const ofApiSession = objectOf({
  mfa: requiredObject({
    apiSessionId: text,
    passedAt: reportedTime,
    passedMfa: flag,
    passedOnWake: flag,
    passedOnUnlock: flag,
  }),
  endpointState: requiredObject({ wokenAt: reportedTime, unlockedAt: reportedTime }),
  sdkInfo: sdkInfoSchema,
})

const postureData = requiredObject({
  apiSessionPostureData: { type: 'object', additionalProperties: ofApiSession },
  domain: reported({ domain: reportedText }),
  mac: reported({ addresses: listOf(text) }),
  os: reported({ type: reportedText, version: reportedText, build: reportedText }),
  processes: listOf(
    reported({ path: reportedText, binaryHash: text, isRunning: flag, signerFingerprints: listOf(text) }),
  ),
})

export const identityPostureOperations: readonly AnyOperation[] = [
  defineOperation({
    ...common,
    id: 'getIdentityFailedServiceRequests',
    path: '/identities/:id/failed-service-requests',
    summary: 'Lists the latest sessions that an identity was refused because of posture checks, the oldest first.',
    returns: { kind: 'data', schema: listOf(failure) },
    async run({ controller, context, params }) {
      const { id } = await requireRow(context, identities, params.id)
      const requests = controller.posture.failedRequests.list(id)
      return dataResponse(requests.map((request) => ({ ...request, when: toIsoTime(request.when) })))
    },
  }),
  defineOperation({
    ...common,
    id: 'getIdentityPostureData',
    path: '/identities/:id/posture-data',
    summary: 'Shows what the machines of an identity have reported about themselves.',
    returns: { kind: 'data', schema: postureData },
    async run({ controller, context, params }) {
      const row = await requireRow(context, identities, params.id)
      const { reported } = controller.posture
      const sdkInfo = new RawJson(row.sdkInfo as string)
      const sessions = reported.listApiSessions(row.id)
      return dataResponse({
        apiSessionPostureData: Object.fromEntries(
          sessions.map((session) => [session.id, { ...renderMfaState(session), sdkInfo }]),
        ),
        ...renderMachine(reported.findMachine(row.id)),
      })
    },
  }),
]

/** The members that every kind of posture has while it is not reported. */
const NO_RESPONSE = { lastUpdatedAt: null, postureCheckId: '', timedOut: false } as const

function renderResponse(response: StoredResponse | undefined) {
  if (!response) return NO_RESPONSE
  return { lastUpdatedAt: toIsoTime(response.at), postureCheckId: response.postureCheckId, timedOut: false }
}

function renderMachine(machine: MachineState | undefined) {
  const { os, domain, mac } = machine ?? {}
  return {
    domain: { ...renderResponse(domain), domain: domain?.domain ?? null },
    mac: { ...renderResponse(mac), addresses: mac?.macAddresses ?? [] },
    os: {
      ...renderResponse(os),
      build: os?.build ?? null,
      type: os?.type ?? null,
      version: os?.version ?? null,
    },
    processes: (machine ? listProcesses(machine) : []).map((process) => ({
      ...renderResponse(process),
      path: process.path,
      binaryHash: process.hash,
      isRunning: process.isRunning,
      signerFingerprints: process.signerFingerprints,
    })),
  }
}

function renderMfaState({ id, mfaPassedAt, wokenAt, unlockedAt }: MfaState) {
  const hasProofSince = (at: Instant | null) => mfaPassedAt !== null && (at === null || at <= mfaPassedAt)
  const toTime = (at: Instant | null) => (at === null ? null : toIsoTime(at))
  return {
    mfa: {
      apiSessionId: id,
      passedMfa: mfaPassedAt !== null,
      passedAt: toTime(mfaPassedAt),
      passedOnWake: hasProofSince(wokenAt),
      passedOnUnlock: hasProofSince(unlockedAt),
    },
    endpointState: { wokenAt: toTime(wokenAt), unlockedAt: toTime(unlockedAt) },
  }
}
