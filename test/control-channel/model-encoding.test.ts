// A whole data model is encoded by hand where that is most of it: to what the library of protobuf decodes alike.
import { fromBinary, toJson } from '@bufbuild/protobuf'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  DataState_ChangeSetSchema,
  type DataState_Event,
  DataState_EventSchema,
  DataStateSchema,
} from '../../server/control-channel/messages/edge_pb.ts'
import { encodeChangeSet, encodeState } from '../../server/control-channel/model-encoding.ts'
import { MEMBER_KINDS, type ModelEvent, type ModelIdentity } from '../../src/network/router-model/model-events.ts'

const text = fc.string({ unit: 'grapheme', maxLength: 200 })

const plain = {
  kind: 'identity',
  hostingCost: 0,
  hostingPrecedence: 'default',
  serviceCosts: {},
  servicePrecedences: {},
  appData: '',
  configs: {},
  isDisabled: false,
} as const

const identity: fc.Arbitrary<ModelIdentity> = fc
  .tuple(
    text,
    text,
    fc.constantFrom<Partial<ModelIdentity>>(
      {},
      { hostingCost: 5 },
      { hostingPrecedence: 'required' },
      { serviceCosts: { service: 3 } },
      { servicePrecedences: { service: 'failed' } },
      { appData: '{"key":"värde"}' },
      { configs: { service: { type: 'config' } } },
      { isDisabled: true },
    ),
  )
  .map(([id, name, values]) => ({ ...plain, id, name, ...values }))

const event: fc.Arbitrary<ModelEvent> = fc.oneof(
  identity.map((entity) => ({ action: 'create' as const, entity })),
  fc.record({
    action: fc.constantFrom('add' as const, 'remove' as const),
    policyId: text,
    members: fc.constantFrom(...MEMBER_KINDS),
    ids: fc.array(text, { maxLength: 300 }),
  }),
)

describe('a whole data model', () => {
  it('decodes to the events that the same changes decode to', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(event, { maxLength: 30 }), async (events) => {
        const batches = (async function* () {
          yield events
        })()
        const parts = await encodeState({ index: 7, timeline: 'timeline', batches })
        const state = fromBinary(DataStateSchema, Buffer.concat(parts))
        const set = fromBinary(DataState_ChangeSetSchema, encodeChangeSet({ index: 7, previousIndex: 6, events }))
        const toText = (events: readonly DataState_Event[]) => events.map((one) => toJson(DataState_EventSchema, one))
        expect(toText(state.events)).toEqual(toText(set.changes))
        expect(state).toMatchObject({ endIndex: 7n, timelineId: 'timeline' })
      }),
      { numRuns: 200 },
    )
  })

  it('of many entries is encoded in parts of a size that can be written at once', async () => {
    const ids = Array.from({ length: 1_000 }, (_, at) => `01ARZ3NDEKTSV4RRFFQ69G${at}`)
    const batches = (async function* () {
      for (let nth = 0; nth < 100; nth += 1)
        yield [{ action: 'add', policyId: 'policy', members: 'identities', ids }] as const
    })()
    const parts = await encodeState({ index: 1, timeline: '', batches })
    expect(parts.length).toBeGreaterThan(10)
    expect(fromBinary(DataStateSchema, Buffer.concat(parts)).events).toHaveLength(100)
  })
})
