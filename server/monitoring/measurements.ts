// The measurements behind the metrics, which run when the metrics are read. A measurement costs nothing in between.

import { countShownRecords } from '../../src/authentication/api-sessions/revoked-rows.ts'
import type { Controller } from '../../src/controller/controller.ts'
import { version } from '../../src/foundation/version.ts'
import { readNotAfter } from '../../src/pki/certificates.ts'
import type { Context } from '../../src/storage/transactions/context.ts'
import { listClusterMeasurements } from './cluster-measurements.ts'
import type { Load } from './load.ts'
import type { Measurement, Sample } from './measurement.ts'

/** The resources whose records are counted, by their plural names. */
const COUNTED = [
  'identities',
  'services',
  'edge-routers',
  'terminators',
  'service-policies',
  'edge-router-policies',
  'service-edge-router-policies',
  'posture-checks',
  'enrollments',
  'sessions',
] as const

/** @param context reads the database as the controller itself */
export function listMeasurements(controller: Controller, context: Context, load: Load): readonly Measurement[] {
  const { auth, authority, clock, config, fabric, health, routers, store } = controller
  const count = (name: string, help: string, read: () => number): Measurement => ({
    name,
    kind: name.endsWith('_total') ? 'counter' : 'gauge',
    help,
    read: () => [{ value: read() }],
  })
  return [
    {
      name: 'build_info',
      kind: 'gauge',
      help: 'The version of the controller; the value is always 1.',
      labels: ['version', 'revision'],
      read: () => [{ labels: { version: version.version, revision: version.revision }, value: 1 }],
    },
    {
      name: 'health_check',
      kind: 'gauge',
      help: 'Whether a health check passes: 1, or 0.',
      labels: ['check'],
      async read() {
        const { checks } = await health.report()
        return checks.map(({ id, isHealthy }) => ({ labels: { check: id }, value: isHealthy ? 1 : 0 }))
      },
    },
    count('event_loop_delay_seconds', 'How late the event loop is; load is shed by it.', () => load.delayMs / 1_000),
    count('commits_total', 'Commits to the database; each may hold several transactions.', () => store.stats().commits),
    count('transactions_total', 'Transactions that were committed.', () => store.stats().transactions),
    count('write_queue_length', 'Transactions that wait for their commit.', () => store.stats().waiting),
    count('password_queue_length', 'Passwords that wait to be hashed or compared.', () => auth.passwordHasher.waiting),
    count('open_streams', 'Lists that are being streamed from the database.', () => store.stats().openStreams),
    count('scans_total', 'Lists that were computed in a thread of their own.', () => store.stats().scans),
    count('api_sessions', 'API sessions.', () => auth.apiSessions.size),
    count('routers_connected', 'Routers with a control channel.', () => routers.connected.size),
    count('links', 'Links between routers.', () => fabric.links.list().length),
    count('circuits', 'Circuits.', () => fabric.circuits.size),
    {
      name: 'records',
      kind: 'gauge',
      help: 'Records, by resource.',
      labels: ['resource'],
      async read() {
        const samples: Sample[] = []
        for (const resource of COUNTED)
          samples.push({ labels: { resource }, value: await countShownRecords(store, context, resource) })
        return samples
      },
    },
    {
      name: 'audit_records_total',
      kind: 'counter',
      help: 'Audit records that were ever written.',
      read: async () => [{ value: await readNewestAuditRecord(context) }],
    },
    {
      name: 'own_certificate_not_after_seconds',
      kind: 'gauge',
      help: "The end of the validity of the controller's own certificates, in seconds since 1970.",
      labels: ['kind'],
      read: () =>
        Object.entries({
          root: authority.root,
          intermediate: authority.intermediate.certificate,
          server: authority.server.certificate,
        }).map(([kind, certificate]) => ({ labels: { kind }, value: readNotAfter(certificate) / 1_000 })),
    },
    {
      name: 'certificates_expiring',
      kind: 'gauge',
      help: 'Certificates that end within certificates.warnBefore, by what they are for.',
      labels: ['kind'],
      read: () => countExpiring(context, clock.now(), clock.now() + config['certificates.warnBefore']),
    },
    ...listClusterMeasurements(controller.cluster, store),
  ]
}

async function readNewestAuditRecord({ db }: Context): Promise<number> {
  const row = await db.selectFrom('audit_records').select('n').orderBy('n', 'desc').limit(1).executeTakeFirst()
  return row?.n ?? 0
}

async function countExpiring({ db }: Context, from: number, to: number): Promise<Sample[]> {
  const rows = await db
    .selectFrom('certificates')
    .select(['kind', (eb) => eb.fn.countAll<number>().as('n')])
    .where('notAfter', '>', from)
    .where('notAfter', '<=', to)
    .groupBy('kind')
    .execute()
  return rows.map(({ kind, n }) => ({ labels: { kind }, value: n }))
}
