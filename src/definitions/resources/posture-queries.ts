// Posture queries: for each policy of a service, the posture checks that it demands and whether they pass.
import { flag, links, listOf, orNull, requiredObject, text, time, whole } from '../schema/json-schema.ts'
import { operatingSystemTypes, postureChecks } from './posture-checks.ts'

const process = requiredObject({ osType: { type: 'string', enum: operatingSystemTypes }, path: text })

const query = requiredObject(
  {
    _links: links,
    id: text,
    createdAt: time,
    updatedAt: time,
    tags: { type: 'object' },
    queryType: { type: 'string', enum: Object.keys(postureChecks.variants ?? {}) },
    isPassing: flag,
    timeout: whole,
    timeoutRemaining: whole,
    timeoutAt: time,
    promptOnWake: flag,
    promptOnUnlock: flag,
    process,
    processes: orNull(listOf(process)),
  },
  ['timeoutAt', 'promptOnWake', 'promptOnUnlock', 'process'],
)

export const postureQuerySet = requiredObject({
  policyId: text,
  policyType: { type: 'string', enum: ['Dial', 'Bind', 'Invalid'] },
  isPassing: flag,
  postureQueries: listOf(query),
})
