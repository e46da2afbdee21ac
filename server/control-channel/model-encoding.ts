// Encodes the data model of routers, and its changes. What many routers are sent is encoded once.
import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import { type Timestamp, timestampFromMs } from '@bufbuild/protobuf/wkt'
import type {
  MemberKind,
  ModelChangeSet,
  ModelEntity,
  ModelEvent,
  ModelIdentity,
  ModelKind,
} from '../../src/network/router-model/model-events.ts'
import type { ModelState } from '../../src/network/router-model/model-state.ts'
import type { PublicKey } from '../../src/network/routers/router-connection.ts'
import { toKeyEvent } from './announcements.ts'
import {
  DataState_Action,
  DataState_ChangeSetSchema,
  type DataState_EventSchema,
  DataStateSchema,
  PolicyType,
  RouterDataModelValidateRequestSchema,
  ServicePolicyRelatedEntityType,
  TerminatorPrecedence,
} from './messages/edge_pb.ts'
import { isPlain, ModelWriter } from './model-writer.ts'
import { encodePostureCheck } from './posture-encoding.ts'

type Event = MessageInitShape<typeof DataState_EventSchema>
type EventModel = NonNullable<Event['Model']>

// A part is at least that long, because each write of a connection calls the system.
const MIN_PART_BYTES = 128 * 1024

const changeSets = new WeakMap<ModelChangeSet, Uint8Array>()
const states = new WeakMap<ModelState, Promise<readonly Uint8Array[]>>()

export function encodeChangeSet(set: ModelChangeSet): Uint8Array {
  let encoded = changeSets.get(set)
  if (!encoded) {
    const { index, previousIndex, events } = set
    const message = create(DataState_ChangeSetSchema, {
      index: BigInt(index),
      previousIndex: BigInt(previousIndex),
      changes: events.map(toEvent),
    })
    encoded = toBinary(DataState_ChangeSetSchema, message)
    changeSets.set(set, encoded)
  }
  return encoded
}

/**
 * Encodes a whole model, in parts: messages that follow each other in a body are one message with the entries of all.
 * Rejects as the batches of the state do.
 */
export function encodeState(state: ModelState): Promise<readonly Uint8Array[]> {
  let encoded = states.get(state)
  if (!encoded) {
    encoded = encodeParts(state)
    states.set(state, encoded)
  }
  return encoded
}

async function encodeParts({ index, timeline, batches }: ModelState): Promise<readonly Uint8Array[]> {
  const parts: Uint8Array[] = []
  const writer = new ModelWriter()
  for await (const events of batches) {
    for (const event of events) addEvent(writer, event)
    if (writer.length >= MIN_PART_BYTES) parts.push(writer.take())
  }
  const end = create(DataStateSchema, { endIndex: BigInt(index), timelineId: timeline })
  writer.addEncoded(toBinary(DataStateSchema, end))
  return [...parts, writer.take()]
}

function addEvent(writer: ModelWriter, event: ModelEvent): void {
  if ('members' in event) writer.addMembers(event, MEMBER_TYPES[event.members])
  else if ('entity' in event && event.entity.kind === 'identity' && isPlain(event.entity))
    writer.addIdentity(event.entity)
  else writer.addEncoded(encodeEvents([toEvent(event)]))
}

/** Encodes the request that a router takes a whole model in place of its own, in parts as the model is. */
export function encodeReplacement(parts: readonly Uint8Array[]): readonly Uint8Array[] {
  let bytes = 0
  for (const { length } of parts) bytes += length
  const { state, fix } = RouterDataModelValidateRequestSchema.field
  const begin = new BinaryWriter().tag(state.number, WireType.LengthDelimited).uint32(bytes).finish()
  return [begin, ...parts, new BinaryWriter().tag(fix.number, WireType.Varint).bool(true).finish()]
}

/** A part of a whole model with these public keys. */
export function encodeStateKeys(keys: readonly PublicKey[]): Uint8Array {
  return encodeEvents(keys.map(toKeyEvent))
}

function encodeEvents(events: Event[]): Uint8Array {
  return toBinary(DataStateSchema, create(DataStateSchema, { events }))
}

const ACTIONS = { create: DataState_Action.Create, update: DataState_Action.Update } as const

const MEMBER_TYPES: Readonly<Record<MemberKind, ServicePolicyRelatedEntityType>> = {
  services: ServicePolicyRelatedEntityType.RelatedService,
  'posture-checks': ServicePolicyRelatedEntityType.RelatedPostureCheck,
  identities: ServicePolicyRelatedEntityType.RelatedIdentity,
}

function toEvent(event: ModelEvent): Event {
  if ('entity' in event) return { action: ACTIONS[event.action], Model: encodeEntity(event.entity) }
  if ('kind' in event) return { action: DataState_Action.Delete, Model: encodeDeleted(event.kind, event.id) }
  const { action, policyId, members, ids } = event
  const value = {
    policyId,
    relatedEntityIds: [...ids],
    relatedEntityType: MEMBER_TYPES[members],
    add: action === 'add',
  }
  return { Model: { case: 'servicePolicyChange', value } }
}

/** Of what is deleted, routers need its id only. */
function encodeDeleted(kind: ModelKind, id: string): EventModel {
  switch (kind) {
    case 'config-type':
      return { case: 'configType', value: { id } }
    case 'posture-check':
      return { case: 'postureCheck', value: { id } }
    case 'policy':
      return { case: 'servicePolicy', value: { id } }
    case 'public-key':
      return { case: 'publicKey', value: { kid: id } }
    case 'config':
    case 'identity':
    case 'service':
    case 'revocation':
      return { case: kind, value: { id } }
  }
}

function encodeEntity(entity: ModelEntity): EventModel {
  switch (entity.kind) {
    case 'config-type':
      return { case: 'configType', value: { id: entity.id, name: entity.name } }
    case 'config': {
      const { id, name, typeId, data } = entity
      return { case: 'config', value: { id, name, typeId, dataJson: data } }
    }
    case 'identity':
      return { case: 'identity', value: encodeIdentity(entity) }
    case 'service': {
      const { id, name, isEncryptionRequired, configIds } = entity
      return { case: 'service', value: { id, name, encryptionRequired: isEncryptionRequired, configs: [...configIds] } }
    }
    case 'posture-check':
      return { case: 'postureCheck', value: encodePostureCheck(entity) }
    case 'policy': {
      const { id, name, type } = entity
      const policyType = type === 'Dial' ? PolicyType.DialPolicy : PolicyType.BindPolicy
      return { case: 'servicePolicy', value: { id, name, policyType } }
    }
    case 'revocation': {
      const { id, type, issuedBefore, expiresAt } = entity
      // Tokens say in which second they were issued. Those of sessions from before, in the same second, are revoked with these.
      const second = Math.floor(issuedBefore / 1_000) * 1_000
      const value = { id, type, issuedBefore: toTimestamp(second), ExpiresAt: toTimestamp(expiresAt) }
      return { case: 'revocation', value }
    }
  }
}

const PRECEDENCES = {
  default: TerminatorPrecedence.Default,
  required: TerminatorPrecedence.Required,
  failed: TerminatorPrecedence.Failed,
} as const

function encodeIdentity(identity: ModelIdentity) {
  const { id, name, hostingCost, hostingPrecedence, serviceCosts, servicePrecedences, appData, configs } = identity
  return {
    id,
    name,
    defaultHostingPrecedence: PRECEDENCES[hostingPrecedence],
    defaultHostingCost: hostingCost,
    serviceHostingPrecedences: mapValues(servicePrecedences, (precedence) => PRECEDENCES[precedence]),
    serviceHostingCosts: { ...serviceCosts },
    appDataJson: appData === '' ? NO_BYTES : Buffer.from(appData),
    serviceConfigs: mapValues(configs, (ids) => ({ configs: { ...ids } })),
    disabled: identity.isDisabled,
  }
}

const NO_BYTES = new Uint8Array()

function mapValues<T, U>(values: Readonly<Record<string, T>>, change: (value: T) => U): Record<string, U> {
  return Object.fromEntries(Object.entries(values).map(([key, value]) => [key, change(value)]))
}

function toTimestamp(time: number): Timestamp {
  return timestampFromMs(time)
}
