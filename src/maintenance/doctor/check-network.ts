// Checks what administrators configured: policies that match nothing, services that cannot be reached, credentials that are missing.
import { setImmediate } from 'node:timers/promises'
import { sql } from 'kysely'
import { queryTunnelers } from '../../authentication/router-identities.ts'
import { toSetTableName } from '../../definitions/model/columns.ts'
import { compiledResources } from '../../definitions/model/index.ts'
import { getResource } from '../../definitions/resources/index.ts'
import { toIsoTime } from '../../foundation/clock.ts'
import { quoteShellWord } from '../../foundation/shell-words.ts'
import type { PolicyReader } from '../../policy/policy-index.ts'
import { getSqlDialect } from '../../storage/sql-dialect.ts'
import type { Store } from '../../storage/store.ts'
import { type Context, toReader } from '../../storage/transactions/context.ts'
import { isOneOf } from '../../storage/untyped.ts'
import { type Diagnosis, MAX_DIAGNOSES_PER_CHECK } from './diagnosis.ts'

// How many services are looked up in one turn of the event loop.
const IDS_IN_ONE_TURN = 200

/** The parts that the checks of the network read. */
export interface Network {
  readonly store: Store
  readonly context: Context
  readonly index: PolicyReader
  readonly warnBeforeMs: number
}

interface DeadRole {
  readonly name: string
  readonly value: string
}

/** Roles of policies that match no record: a misspelt attribute, or a record that was deleted. */
export async function checkRoles({ context }: Network): Promise<Diagnosis[]> {
  const diagnoses: Diagnosis[] = []
  for (const { definition, references } of compiledResources) {
    for (const { column, field, target } of references) {
      if (!field.kind.roles) continue
      const targetResource = getResource(target)
      const attributes = sql.table(toSetTableName(targetResource, 'roleAttributes'))
      const { rows } = await sql<DeadRole>`
        select p.name, s.value from ${sql.table(toSetTableName(definition, column))} s
        join ${sql.table(definition.table)} p on p.n = s.n
        where (s.value like '#%' and s.value <> '#all'
            and not exists (select 1 from ${attributes} t where t.value = substr(s.value, 2)))
          or (s.value like '@%'
            and not exists (select 1 from ${sql.table(targetResource.table)} t where t.id = substr(s.value, 2)))
        order by p.name, s.value limit ${MAX_DIAGNOSES_PER_CHECK}`.execute(context.db)
      const noun = targetResource.name.replaceAll('-', ' ')
      for (const { name, value } of rows) {
        const isAttribute = value.startsWith('#')
        diagnoses.push({
          check: 'roles',
          subject: `${definition.name} ${name}`,
          message: `${column} contains ${value}, which matches no ${noun}`,
          remedy: isAttribute
            ? `controller ${targetResource.name} update NAME --add-role ${quoteShellWord(value.slice(1))}, or correct the policy: controller ${definition.name} update ${quoteShellWord(name)} --help`
            : 'controller database fix-data-integrity',
        })
      }
    }
  }
  return diagnoses
}

/** Policies that grant nothing, because one of their sides is empty or matches nothing. */
export function checkPolicies({ index }: Network): Diagnosis[] {
  const policies = [
    ...index.listServicePolicies('Dial').map((policy) => ({ kind: 'service-policy', policy })),
    ...index.listServicePolicies('Bind').map((policy) => ({ kind: 'service-policy', policy })),
    ...Array.from(index.listEdgeRouterPolicies(), (policy) => ({ kind: 'edge-router-policy', policy })),
    ...Array.from(index.listServiceEdgeRouterPolicies(), (policy) => ({ kind: 'service-edge-router-policy', policy })),
  ]
  return policies.flatMap(({ kind, policy }): Diagnosis[] => {
    const { name, subjects } = policy
    const hasSubjects = subjects.isAll || subjects.ids.size > 0 || subjects.attributes.size > 0
    if (hasSubjects && index.countGranted(policy) > 0) return []
    const reason = hasSubjects ? 'no record matches what it grants' : 'it names nothing that gets the grant'
    const remedy = `controller ${kind} get ${quoteShellWord(name)}, then update or delete it`
    return [{ check: 'policies', subject: `${kind} ${name}`, message: `the policy grants nothing: ${reason}`, remedy }]
  })
}

/** Services that nothing hosts, and those that no router may carry. */
export async function checkServices(network: Network): Promise<Diagnosis[]> {
  return [...(await findUnhosted(network)), ...(await findWithoutRouters(network))]
}

async function findUnhosted({ store, context }: Network): Promise<Diagnosis[]> {
  const query = context.db
    .selectFrom('services')
    .select('name')
    .where((eb) =>
      eb.not(eb.exists(eb.selectFrom('terminators').select('id').whereRef('serviceId', '=', 'services.id'))),
    )
    .where(getSqlDialect(context.db).guard(2) as never)
    .orderBy('n')
    .limit(MAX_DIAGNOSES_PER_CHECK)
  const rows = await store.scan(query, toReader(context.caller))
  return rows.map(({ name }) => ({
    check: 'services',
    subject: `service ${name}`,
    message: 'nothing hosts it: it has no terminator',
    remedy: `controller policy who ${quoteShellWord(name)} --type Bind`,
  }))
}

async function findWithoutRouters({ context, index }: Network): Promise<Diagnosis[]> {
  const ids: string[] = []
  let count = 0
  for (const id of index.listServiceIds()) {
    if (++count % IDS_IN_ONE_TURN === 0) await setImmediate()
    if (index.collectRouterSlotsOfService(id).isEmpty && ids.push(id) === MAX_DIAGNOSES_PER_CHECK) break
  }
  const rows = await context.db
    .selectFrom('services')
    .select('name')
    .where(isOneOf(context.db, 'id', ids))
    .orderBy('name')
    .execute()
  return rows.map(({ name }) => ({
    check: 'services',
    subject: `service ${name}`,
    message: 'no edge router may carry it: no service edge router policy matches it and a router',
    remedy: `controller service-edge-router-policy create NAME --semantic AnyOf --service-roles ${quoteShellWord(`@${name}`)} --edge-router-roles '#all'`,
  }))
}

/** Enrollments that can no longer be used. */
export async function checkEnrollments({ context }: Network): Promise<Diagnosis[]> {
  const now = context.clock.now()
  const expired = await context.db
    .selectFrom('enrollments')
    .leftJoin('identities', 'identities.id', 'enrollments.identityId')
    .leftJoin('routers', (join) =>
      join.on((eb) => eb('routers.id', '=', eb.fn.coalesce('enrollments.edgeRouterId', 'enrollments.transitRouterId'))),
    )
    .select([
      'enrollments.id',
      'identities.name as identityName',
      'routers.name as routerName',
      'enrollments.expiresAt',
    ])
    .where('enrollments.expiresAt', '<', now)
    .orderBy('enrollments.expiresAt')
    .limit(MAX_DIAGNOSES_PER_CHECK)
    .execute()
  return expired.map(({ id, identityName, routerName, expiresAt }) => ({
    check: 'enrollments',
    subject: identityName === null ? `router ${routerName}` : `identity ${identityName}`,
    message: `its enrollment token expired at ${toIsoTime(expiresAt)}, and was not used`,
    remedy: `controller enrollment refresh ${id}, or: controller enrollment delete ${id}`,
  }))
}

/** Identities that cannot sign in. */
export async function checkIdentities({ store, context }: Network): Promise<Diagnosis[]> {
  const isAbsent = (table: 'authenticators' | 'enrollments') =>
    sql<boolean>`not exists (select 1 from ${sql.table(table)} c where c.${sql.ref('identityId')} = ${sql.ref('identities.id')})`.$castTo<boolean>()
  const withoutCredentials = await store.scan(
    context.db
      .selectFrom('identities')
      .select('name')
      .where('externalId', 'is', null)
      .where('id', 'not in', queryTunnelers(context).select('id'))
      .where(isAbsent('authenticators'))
      .where(isAbsent('enrollments'))
      .where(getSqlDialect(context.db).guard(2) as never)
      .orderBy('n')
      .limit(MAX_DIAGNOSES_PER_CHECK),
    toReader(context.caller),
  )
  return withoutCredentials.map(({ name }) => ({
    check: 'identities',
    subject: `identity ${name}`,
    message: 'it cannot sign in: it has no authenticator, no enrollment and no external id',
    remedy: `controller enrollment create --identity ${quoteShellWord(name)} --method ott --jwt-file FILE`,
  }))
}

const CERTIFICATE_REMEDIES: Readonly<Record<string, string>> = {
  root: 'controller pki rotate root',
  intermediate: 'it renews itself while the controller runs; else: controller pki rotate intermediate',
  server: 'it renews itself while the controller runs',
  identity: 'its holder runs: controller renew; or enroll it again',
  router: 'it renews itself while the router is connected; else: controller edge-router re-enroll',
  authority: 'controller ca create with the next certificate of the authority',
  signer: 'controller external-jwt-signer update with the next certificate',
}

/** Certificates that end soon, or have ended. */
export async function checkCertificates({ context, warnBeforeMs }: Network): Promise<Diagnosis[]> {
  const now = context.clock.now()
  const rows = await context.db
    .selectFrom('certificates')
    .select(['kind', 'subject', 'notAfter'])
    .where('notAfter', '<', now + warnBeforeMs)
    .where('isCurrent', '=', 1)
    .orderBy('notAfter')
    .limit(MAX_DIAGNOSES_PER_CHECK)
    .execute()
  return rows.map(({ kind, subject, notAfter }) => ({
    check: 'certificates',
    subject: `${kind} ${subject}`,
    message: `the certificate ${notAfter < now ? 'ended' : 'ends'} at ${toIsoTime(notAfter)}`,
    remedy: CERTIFICATE_REMEDIES[kind] ?? 'controller certificate list --expiring',
  }))
}
