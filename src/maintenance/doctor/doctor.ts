// Looks for what is wrong with a controller and its network, or soon will be, before users notice.
import type { Access } from '../../access/access.ts'
import type { ExternalSigners } from '../../authentication/signers/external-signers.ts'
import { toIsoTime } from '../../foundation/clock.ts'
import { quoteShellWord } from '../../foundation/shell-words.ts'
import type { OidcAnnouncement } from '../../network/routers/oidc-announcement.ts'
import type { Authority } from '../../pki/authority.ts'
import type { Config } from '../../settings/settings.ts'
import type { Cluster } from '../../storage/cluster/cluster.ts'
import type { Store } from '../../storage/store.ts'
import type { Context } from '../../storage/transactions/context.ts'
import type { Backups } from '../backup/backups.ts'
import type { WebhookDeliveries } from '../webhooks/webhook-deliveries.ts'
import { listClusterChecks } from './check-cluster.ts'
import { checkClusterRows } from './check-cluster-rows.ts'
import {
  checkBackups,
  checkClock,
  checkDisk,
  checkFiles,
  checkSettings,
  fixFiles,
  type Machine,
} from './check-machine.ts'
import {
  checkCertificates,
  checkEnrollments,
  checkIdentities,
  checkPolicies,
  checkRoles,
  checkServices,
  type Network,
} from './check-network.ts'
import { checkOidc, checkRouterPosture, describeOidc } from './check-oidc.ts'
import { checkRouterConnections } from './check-router-connections.ts'
import { checkWebhooks } from './check-webhooks.ts'
import { type Diagnosis, type DoctorFinding, type Fix, MAX_DIAGNOSES_PER_CHECK, type Report } from './diagnosis.ts'

export interface DoctorOptions {
  /** The data directory. */
  readonly directory: string
  readonly config: Config
  readonly store: Store
  /** The controllers among which this one is; undefined if it is alone. */
  readonly cluster: Cluster | undefined
  readonly authority: Authority
  readonly access: Access
  readonly signers: ExternalSigners
  readonly backups: Backups
  readonly oidc: OidcAnnouncement
  readonly webhooks: WebhookDeliveries
}

// A router that lost its subscription asks for it within half a minute.
const MAX_LAG_MS = 60_000

interface DoctorCheck {
  readonly name: string
  /** The state of the controller if it passes. */
  readonly summary: string
  /** Returns the problems; undefined if nothing shows whether there are any. */
  run(): readonly Diagnosis[] | undefined | Promise<readonly Diagnosis[] | undefined>
}

export class Doctor {
  readonly #options: DoctorOptions

  constructor(options: DoctorOptions) {
    this.#options = options
  }

  /** Runs every check; each names at most `MAX_DIAGNOSES_PER_CHECK`. One that cannot be completed is a diagnosis, too. */
  async diagnose(context: Context): Promise<Report> {
    const checks: DoctorFinding[] = []
    const diagnoses: Diagnosis[] = []
    for (const check of await this.#listChecks(context)) {
      const { name, summary } = check
      const findings = await runCheck(check)
      checks.push({ name, summary, outcome: findings ? (findings.length > 0 ? 'failed' : 'passed') : 'unknown' })
      diagnoses.push(...(findings ?? []))
    }
    return { checks, diagnoses }
  }

  /** Puts right what needs no decision of an administrator. */
  fix(): readonly Fix[] {
    return fixFiles(this.#options.directory)
  }

  async #listChecks(context: Context): Promise<readonly DoctorCheck[]> {
    const { directory, config, store, access, cluster } = this.#options
    const machine = await this.#describeMachine(context)
    const network: Network = {
      store,
      context,
      index: access.index,
      warnBeforeMs: config['certificates.warnBefore'],
    }
    const signers = [...this.#options.signers.directory.all()]
    const check = (name: string, summary: string, run: DoctorCheck['run']): DoctorCheck => ({ name, summary, run })
    return [
      check('clock', 'the clock is not behind the certificates and the newest change', () => checkClock(machine)),
      check('disk', 'the disk has space for copies of the database', () => checkDisk(machine)),
      check('files', 'the files of the data directory are private', () => checkFiles(machine)),
      check('backups', 'backups are made as scheduled', () => checkBackups(machine)),
      ...(cluster
        ? [
            check('log of the cluster', 'it leads on from the rows of this controller', () =>
              checkClusterRows(directory, cluster),
            ),
          ]
        : []),
      check('settings', 'every setting has an effect', () => checkSettings(machine, signers.length)),
      check('certificates', 'no certificate ends soon', () => checkCertificates(network)),
      check('signers', 'every external JWT signer has keys', () => this.#checkSigners()),
      ...(await listClusterChecks(cluster, config, context)),
      check('roles', 'every role of a policy matches a record', () => checkRoles(network)),
      check('policies', 'every policy grants something', () => checkPolicies(network)),
      check('services', 'every service is hosted, and routers may carry it', () => checkServices(network)),
      check('routers', 'every router is connected', () => this.#checkRouters(context)),
      ...(cluster
        ? [
            check('router connections', 'every router of release 2 is connected to each controller that runs', () =>
              checkRouterConnections(context, cluster, access.live.network),
            ),
          ]
        : []),
      check('data model', 'every connected router has its changes', () => this.#checkModel(context)),
      check('oidc', describeOidc(this.#options.oidc), () => checkOidc(network, this.#options.oidc)),
      check('guarded services', 'routers know the posture of every client', () => checkRouterPosture(network, access)),
      check('webhooks', 'every webhook delivers', () => checkWebhooks(context, this.#options.webhooks)),
      check('enrollments', 'no enrollment has expired unused', () => checkEnrollments(network)),
      check('identities', 'every identity can sign in', () => checkIdentities(network)),
    ]
  }

  async #describeMachine(context: Context): Promise<Machine> {
    const { directory, config, authority, backups } = this.#options
    const newest = await context.db
      .selectFrom('audit_records')
      .select('at')
      .orderBy('n', 'desc')
      .limit(1)
      .executeTakeFirst()
    return {
      directory,
      isServed: context.caller.kind !== 'local-operator',
      config,
      authority,
      now: context.clock.now(),
      backups: backups.list(),
      backupsFolder: backups.folder,
      backupObstacle: backups.findObstacle(),
      lastChangeAt: newest?.at,
    }
  }

  #checkSigners(): Diagnosis[] {
    const { directory, keyRefresher } = this.#options.signers
    return [...directory.all()].flatMap(({ id, name, enabled, keys }): Diagnosis[] => {
      const { failure } = keyRefresher.getStatus(id)
      if (!enabled || (!failure && keys.size > 0)) return []
      const message = failure
        ? `its endpoint has returned no keys since ${toIsoTime(failure.since)}: ${failure.message}`
        : 'it has no keys, so that no token of it can be verified'
      const remedy = `controller external-jwt-signer test ${quoteShellWord(name)} --help`
      return [{ check: 'signers', subject: `external-jwt-signer ${name}`, message, remedy }]
    })
  }

  /** Routers that are not connected; unknown offline. */
  async #checkRouters({ db }: Context): Promise<Diagnosis[] | undefined> {
    const { network } = this.#options.access.live
    const routers = await db
      .selectFrom('routers')
      .select(['id', 'name', 'isVerified', 'isEdge'])
      .where('disabled', '=', 0)
      .orderBy('name')
      .execute()
    if (routers.some(({ id }) => network.getPresence(id) === 'unknown')) return undefined
    return routers.flatMap(({ id, name, isVerified, isEdge }): Diagnosis[] => {
      const command = isEdge === 1 ? 'edge-router' : 'router'
      if (network.getPresence(id) !== 'offline') return []
      const message = isVerified === 1 ? 'it is not connected' : 'it has not enrolled'
      const remedy =
        isVerified === 1 ? `start it, and look at its log` : `controller ${command} get ${quoteShellWord(name)} -o jwt`
      return [{ check: 'routers', subject: `${command} ${name}`, message, remedy }]
    })
  }

  /** Connected routers that have lacked changes of the data model for some time; unknown offline. */
  async #checkModel({ db, clock }: Context): Promise<Diagnosis[] | undefined> {
    const { network } = this.#options.access.live
    const routers = await db
      .selectFrom('routers')
      .select(['id', 'name'])
      .where('isEdge', '=', 1)
      .orderBy('name')
      .execute()
    if (routers.some(({ id }) => network.getPresence(id) === 'unknown')) return undefined
    return routers.flatMap(({ id, name }): Diagnosis[] => {
      const { behindSince } = network.findRouter(id)?.model ?? {}
      const lagMs = behindSince === undefined ? 0 : clock.monotonic() - behindSince
      if (lagMs <= MAX_LAG_MS) return []
      const message = `it has lacked changes of the data model for ${Math.floor(lagMs / 1_000)} seconds`
      const remedy = 'look at its log, and at the network between it and the controller'
      return [{ check: 'data model', subject: `edge-router ${name}`, message, remedy }]
    })
  }
}

async function runCheck({ name, run }: DoctorCheck): Promise<readonly Diagnosis[] | undefined> {
  try {
    return (await run())?.slice(0, MAX_DIAGNOSES_PER_CHECK)
  } catch (error) {
    const message = `the check could not be completed: ${(error as Error).message}`
    return [{ check: name, subject: name, message, remedy: 'run the command again later' }]
  }
}
