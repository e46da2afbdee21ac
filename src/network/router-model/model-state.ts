// The whole data model of routers, as it is after one commit: read in steps from one snapshot of the database, which other work may
// outrun meanwhile.
import { PolicyIndex } from '../../policy/policy-index.ts'
import { compilePostureCheck } from '../../policy/posture/posture-checks.ts'
import { sqlText } from '../../storage/lists/sql-text.ts'
import { compileSql } from '../../storage/sql-dialect.ts'
import type { Store } from '../../storage/store.ts'
import type { TokenRevocation } from '../../storage/transactions/changes.ts'
import {
  type IdentityRow,
  identityFromRow,
  type ModelOverride,
  toModelConfig,
  toModelConfigType,
  toModelIdentity,
  toModelPolicy,
  toModelPostureCheck,
  toModelService,
} from './model-entities.ts'
import { MEMBER_KINDS, type MemberKind, type ModelEntity, type ModelEvent } from './model-events.ts'

/** The whole model after a commit. */
export interface ModelState {
  /** The position of the last commit that changed the model. */
  readonly index: number
  readonly timeline: string
  /** The events that a router has to apply to an empty model, in steps. They can be read once. */
  readonly batches: AsyncIterable<readonly ModelEvent[]>
}

interface StateRow {
  readonly kind: (typeof KINDS)[number]
  readonly a: string
  readonly b: string
  readonly c: string
  readonly d: string
  readonly e: string
  readonly f: string
  readonly g: string
  readonly h: string
  readonly i: string
  readonly j: string
}

type Column = Exclude<keyof StateRow, 'kind'>

const KINDS = [
  'position',
  'config-type',
  'config',
  'service',
  'posture-check',
  'policy',
  'override',
  'identity',
  'revocation',
] as const
const COLUMNS: readonly Column[] = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j']

/** The rows of every table, in the order in which they are needed: one statement reads one snapshot. */
const SELECTS: readonly (readonly [kind: StateRow['kind'], columns: readonly string[], from: string])[] = [
  ['position', ['(select max(position) from model_changes)', 'timeline'], 'commit_position'],
  ['config-type', ['id', 'name'], 'config_types'],
  ['config', ['id', 'name', '"configTypeId"', 'data'], 'configs'],
  ['service', ['id', 'name', '"encryptionRequired"', 'configs', '"roleAttributes"'], 'services'],
  ['posture-check', ['id', 'name', '"typeId"', 'details', '"roleAttributes"'], 'posture_checks'],
  [
    'policy',
    ['id', 'name', 'type', 'semantic', '"identityRoles"', '"serviceRoles"', '"postureCheckRoles"'],
    'service_policies',
  ],
  ['override', ['"identityId"', '"serviceId"', '"configTypeId"', '"configId"'], 'service_configs'],
  [
    'identity',
    [
      'id',
      'name',
      '"defaultHostingCost"',
      '"defaultHostingPrecedence"',
      '"serviceHostingCosts"',
      '"serviceHostingPrecedences"',
      '"appData"',
      '"disabledAt"',
      '"disabledUntil"',
      '"roleAttributes"',
    ],
    'identities',
  ],
  ['revocation', ['id', 'type', '"issuedBefore"', '"expiresAt"'], 'revocations'],
]

const STATEMENT = SELECTS.map(([kind, columns, from]) => {
  const selected = COLUMNS.map((name, at) => `${columns[at] ?? 'null'} as ${name}`)
  return `select '${kind}' as kind, ${selected.join(', ')} from ${from}`
}).join(' union all ')

// How much is read in one turn of the event loop, and how many members of a policy one event names.
const ROWS_PER_STEP = 200
const MEMBERS_PER_EVENT = 1_000

const READER = { id: 'data model of routers', isAdministrator: true }

/**
 * Begins to read the model.
 * @param initialHead the index of a model that no logged commit has changed
 * @throws as `Store.stream` does
 */
export async function readModelState(store: Store, initialHead: number): Promise<ModelState> {
  const compilable = { compile: () => compileSql<StateRow>(store.db, sqlText<StateRow>`${sqlText.raw(STATEMENT)}`) }
  const rows = store.stream<StateRow>(compilable, { reader: READER })[Symbol.asyncIterator]()
  const first = await rows.next()
  if (first.done) throw new Error('the database has no position')
  const { a: head, b: timeline } = first.value
  return { index: head === null ? initialHead : Number(head), timeline, batches: readBatches(rows) }
}

async function* readBatches(rows: AsyncIterator<StateRow>): AsyncGenerator<readonly ModelEvent[]> {
  const model = new ModelReader()
  let batch: ModelEvent[] = []
  let rowCount = 0
  try {
    for (let next = await rows.next(); !next.done; next = await rows.next()) {
      const entity = model.read(next.value)
      if (entity) batch.push({ action: 'create', entity })
      rowCount += 1
      if (rowCount % ROWS_PER_STEP > 0) continue
      yield batch
      batch = []
      await new Promise((resolve) => setImmediate(resolve))
    }
  } finally {
    await rows.return?.()
  }
  yield batch
  for (const events of model.listPolicies()) {
    yield events
    await new Promise((resolve) => setImmediate(resolve))
  }
}

/** Makes entities of rows, and finds the members of policies. */
class ModelReader {
  readonly #index = new PolicyIndex()
  readonly #policies: ModelEntity[] = []
  readonly #identitiesByPolicy = new Map<string, string[]>()
  readonly #overrides = new Map<string, ModelOverride[]>()

  /** The entity of a row, unless it comes later. */
  read(row: StateRow): ModelEntity | undefined {
    const { a: id, b: name, c, d, e } = row
    switch (row.kind) {
      case 'config-type':
        return toModelConfigType({ id, name })
      case 'config':
        return toModelConfig({ id, name, configTypeId: c, data: JSON.parse(d) })
      case 'service':
        this.#index.setService({ id, attributes: parseList(e) })
        return toModelService({ id, name, encryptionRequired: Number(c) === 1, configs: parseList(d) })
      case 'posture-check': {
        const details = JSON.parse(d)
        this.#index.setPostureCheck({ id, attributes: parseList(e) }, compilePostureCheck({ id, typeId: c, details }))
        return toModelPostureCheck({ id, name, typeId: c, details })
      }
      case 'policy':
        this.#addPolicy(row)
        return undefined
      case 'override':
        this.#addOverride(id, { serviceId: name, configTypeId: c, configId: d })
        return undefined
      case 'identity':
        return this.#readIdentity(row)
      case 'revocation':
        return {
          kind: 'revocation',
          id,
          type: name as TokenRevocation['type'],
          issuedBefore: Number(c),
          expiresAt: Number(d),
        }
      default:
        return undefined
    }
  }

  #addPolicy({ a: id, b: name, c, d, e, f, g }: StateRow): void {
    const type = c as 'Dial' | 'Bind'
    const semantic = d as 'AllOf' | 'AnyOf'
    const roles = { identityRoles: parseList(e), serviceRoles: parseList(f), postureCheckRoles: parseList(g) }
    this.#index.setServicePolicy({ id, name, type, semantic, ...roles })
    this.#policies.push(toModelPolicy({ id, name, type }))
  }

  #addOverride(identityId: string, override: ModelOverride): void {
    const overrides = this.#overrides.get(identityId)
    if (overrides) overrides.push(override)
    else this.#overrides.set(identityId, [override])
  }

  #readIdentity(row: StateRow): ModelEntity {
    const { a: id, b: name, c, d, e, f, g, h, i, j } = row
    for (const { id: policyId } of this.#index.findServicePolicies({ id, attributes: parseList(j) })) {
      const ids = this.#identitiesByPolicy.get(policyId)
      if (ids) ids.push(id)
      else this.#identitiesByPolicy.set(policyId, [id])
    }
    const identity = {
      id,
      name,
      defaultHostingCost: Number(c),
      defaultHostingPrecedence: d,
      serviceHostingCosts: e,
      serviceHostingPrecedences: f,
      appData: g,
      disabledAt: toTime(h),
      disabledUntil: toTime(i),
    }
    return toModelIdentity(identityFromRow(identity as IdentityRow), this.#overrides.get(id) ?? [])
  }

  /** Each policy with its members. */
  *listPolicies(): Generator<readonly ModelEvent[]> {
    for (const entity of this.#policies) {
      yield [{ action: 'create', entity }, ...MEMBER_KINDS.flatMap((kind) => this.#listMembers(entity.id, kind))]
    }
  }

  #listMembers(policyId: string, members: MemberKind): ModelEvent[] {
    const all = this.#listMemberIds(policyId, members)
    const events: ModelEvent[] = []
    for (let at = 0; at < all.length; at += MEMBERS_PER_EVENT)
      events.push({ action: 'add', policyId, members, ids: all.slice(at, at + MEMBERS_PER_EVENT) })
    return events
  }

  #listMemberIds(policyId: string, members: MemberKind): readonly string[] {
    if (members === 'identities') return this.#identitiesByPolicy.get(policyId) ?? []
    const policy = this.#index.findServicePolicy(policyId)
    if (!policy) return []
    if (members === 'services') return this.#index.listGrantedServices([policy])
    return this.#index.listRequiredPostureChecks(policy).map(({ id }) => id)
  }
}

function parseList(text: string): string[] {
  return text === '[]' ? [] : (JSON.parse(text) as string[])
}

function toTime(value: unknown): number | null {
  return value === null ? null : Number(value)
}
