// The whole data model of routers, as it is after one commit: read in steps from one snapshot of the database, which other work may
// outrun meanwhile.
import { PolicyIndex, type PolicyType } from '../../policy/policy-index.ts'
import { compilePostureCheck } from '../../policy/posture/posture-checks.ts'
import type { Semantic } from '../../policy/role-selector.ts'
import { sqlText } from '../../storage/lists/sql-text.ts'
import { compileSql } from '../../storage/sql-dialect.ts'
import type { Store } from '../../storage/store.ts'
import type { TokenRevocation } from '../../storage/transactions/changes.ts'
import {
  IDENTITY_COLUMNS,
  type IdentityRecord,
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

/** A row of any kind. It has few columns, because each of them costs for each of many identities. */
interface StateRow {
  /** The place of the kind in `SELECTS`. */
  readonly kind: number
  readonly a: string
  readonly b: string
  readonly c: string
  readonly d: string
}

const IDENTITY_VALUES = IDENTITY_COLUMNS.slice(2)
  .map((column) => `"${column}"`)
  .join(', ')

/** The condition that an identity has no more than its name: most have not. */
const IS_PLAIN = `"defaultHostingCost" = 0 and "defaultHostingPrecedence" = 'default' and "serviceHostingCosts" = '{}'
  and "serviceHostingPrecedences" = '{}' and "appData" = '{}' and "disabledAt" is null`

/** The rows of every table, in the order in which they are needed: one statement reads one snapshot. */
const SELECTS = [
  // The first one names the columns.
  [
    'position',
    '(select max(position) from model_changes) as a, timeline as b, null as c, null as d from commit_position',
  ],
  ['config-type', 'id, name, null, null from config_types'],
  ['config', 'id, name, "configTypeId", data from configs'],
  ['service', 'id, name, "roleAttributes", json_array("encryptionRequired", configs) from services'],
  ['posture-check', 'id, name, "roleAttributes", json_array("typeId", details) from posture_checks'],
  [
    'policy',
    'id, name, type, json_array(semantic, "identityRoles", "serviceRoles", "postureCheckRoles") from service_policies',
  ],
  ['override', '"identityId", "serviceId", "configTypeId", "configId" from service_configs'],
  [
    'identity',
    `id, name, "roleAttributes", case when ${IS_PLAIN} then null else json_array(${IDENTITY_VALUES}) end from identities`,
  ],
  ['revocation', 'id, type, "issuedBefore", "expiresAt" from revocations'],
] as const

const STATEMENT = SELECTS.map(([, select], kind) => `select ${kind} as kind, ${select}`).join(' union all ')

// How much is read in one turn of the event loop, and how many members of a policy one event names.
const ROWS_PER_STEP = 200
const MEMBERS_PER_EVENT = 1_000

const MAX_PARSED_ATTRIBUTES = 10_000

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
  readonly #attributesByText = new Map<string, readonly string[]>()

  /** The entity of a row, unless it comes later. */
  read({ kind, a: id, b: name, c, d }: StateRow): ModelEntity | undefined {
    switch (SELECTS[kind]?.[0]) {
      case 'config-type':
        return toModelConfigType({ id, name })
      case 'config':
        return toModelConfig({ id, name, configTypeId: c, data: JSON.parse(d) })
      case 'service': {
        const [encryptionRequired, configs] = JSON.parse(d) as [number, string]
        this.#index.setService({ id, attributes: parseList(c) })
        return toModelService({ id, name, encryptionRequired: encryptionRequired === 1, configs: parseList(configs) })
      }
      case 'posture-check': {
        const [typeId, text] = JSON.parse(d) as [string, string]
        const details = JSON.parse(text)
        this.#index.setPostureCheck({ id, attributes: parseList(c) }, compilePostureCheck({ id, typeId, details }))
        return toModelPostureCheck({ id, name, typeId, details })
      }
      case 'policy':
        this.#addPolicy(id, name, c as PolicyType, JSON.parse(d))
        return undefined
      case 'override':
        this.#addOverride(id, { serviceId: name, configTypeId: c, configId: d })
        return undefined
      case 'identity':
        return this.#readIdentity(id, name, c, d)
      case 'revocation': {
        const type = name as TokenRevocation['type']
        return { kind: 'revocation', id, type, issuedBefore: Number(c), expiresAt: Number(d) }
      }
      default:
        return undefined
    }
  }

  #addPolicy(
    id: string,
    name: string,
    type: PolicyType,
    [semantic, ...roles]: [Semantic, string, string, string],
  ): void {
    const [identityRoles, serviceRoles, postureCheckRoles] = roles.map(parseList) as [string[], string[], string[]]
    this.#index.setServicePolicy({ id, name, type, semantic, identityRoles, serviceRoles, postureCheckRoles })
    this.#policies.push(toModelPolicy({ id, name, type }))
  }

  #addOverride(identityId: string, override: ModelOverride): void {
    const overrides = this.#overrides.get(identityId)
    if (overrides) overrides.push(override)
    else this.#overrides.set(identityId, [override])
  }

  #readIdentity(id: string, name: string, attributes: string, values: string | null): ModelEntity {
    for (const policy of this.#index.findServicePolicies({ id, attributes: this.#parseAttributes(attributes) })) {
      const ids = this.#identitiesByPolicy.get(policy.id)
      if (ids) ids.push(id)
      else this.#identitiesByPolicy.set(policy.id, [id])
    }
    const overrides = this.#overrides.get(id)
    if (values === null && !overrides) return { ...PLAIN_ENTITY, id, name }
    const record = values === null ? { ...PLAIN_IDENTITY, id, name } : toIdentityRecord(id, name, JSON.parse(values))
    return toModelIdentity(record, overrides ?? NO_OVERRIDES)
  }

  /** Many identities have the same attributes. */
  #parseAttributes(text: string): readonly string[] {
    let attributes = this.#attributesByText.get(text)
    if (!attributes) {
      attributes = parseList(text)
      if (this.#attributesByText.size < MAX_PARSED_ATTRIBUTES) this.#attributesByText.set(text, attributes)
    }
    return attributes
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

const NO_OVERRIDES: readonly ModelOverride[] = []

/** The values that an identity has in the other columns if it is plain. */
const PLAIN_IDENTITY = {
  id: '',
  name: '',
  defaultHostingCost: 0,
  defaultHostingPrecedence: 'default',
  serviceHostingCosts: {},
  serviceHostingPrecedences: {},
  appData: {},
  disabledAt: null,
  disabledUntil: null,
} as const

/** A plain identity without overrides is a copy: to make one takes most of the time of a model of many. */
const PLAIN_ENTITY = toModelIdentity(PLAIN_IDENTITY, NO_OVERRIDES)

/** @param values in the order of the columns */
function toIdentityRecord(id: string, name: string, values: readonly unknown[]): IdentityRecord {
  const row = Object.fromEntries(IDENTITY_COLUMNS.map((column, at) => [column, [id, name, ...values][at]]))
  return identityFromRow(row as unknown as IdentityRow)
}
