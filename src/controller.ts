// Composes the controller: everything that a request, an offline command or a background job works with.
import { Access } from './access/access.ts'
import { type LiveState, storedTerminators } from './access/live-state.ts'
import { PostureDeadlines } from './access/posture-deadlines.ts'
import { ReportedPosture } from './access/reported-posture.ts'
import { SessionIds } from './access/session-ids.ts'
import { revokeSessions } from './access/session-revocation.ts'
import { requireUsableAdministrator } from './auth/administrators.ts'
import { ApiSessionTokens } from './auth/api-session-tokens.ts'
import { type Auth, createAuth } from './auth/auth.ts'
import { requireSameRights } from './auth/callers.ts'
import { Backups } from './backup/backups.ts'
import { Behaviors } from './behavior.ts'
import { registerBehaviors } from './behaviors.ts'
import { CertificateBehavior } from './certificates/certificate-behavior.ts'
import { updateInventory } from './certificates/inventory.ts'
import { OwnCertificates } from './certificates/own-certificates.ts'
import { RootReceipts } from './certificates/root-receipts.ts'
import { CertificateUpkeep } from './certificates/upkeep.ts'
import type { Clock, Instant } from './clock.ts'
import { reportStartInPast } from './clock-jumps.ts'
import type { Config } from './config.ts'
import { Contexts, type TransactionGuard } from './contexts.ts'
import { ControllerMembership } from './controllers/membership.ts'
import { getDataPaths, requireDatabase, runAsOwner } from './data-directory.ts'
import { Doctor } from './doctor/doctor.ts'
import { EnrollmentIssuer } from './enrollment/enrollments.ts'
import { createFabric, type Fabric } from './fabric/fabric.ts'
import { LiveTraffic } from './fabric/traffic.ts'
import { Health } from './health.ts'
import { DataIntegrity } from './integrity/data-integrity.ts'
import { Repairs } from './integrity/repairs.ts'
import type { Log } from './log.ts'
import { OpenResources } from './open-resources.ts'
import { Authority } from './pki/authority.ts'
import { loadKey } from './pki/files.ts'
import { FailedServiceRequests } from './posture/failed-service-requests.ts'
import { RecordCache } from './records/record-cache.ts'
import { ReferenceCache } from './records/reference-cache.ts'
import { CertificateRenewal } from './routers/certificate-renewal.ts'
import { ConnectedRouters } from './routers/connected-routers.ts'
import type { LiveNetwork, RouterLoad } from './routers/live-network.ts'
import { PeerAnnouncements } from './routers/peer-announcements.ts'
import { RouterProvisioner } from './routers/router-provisioner.ts'
import { SessionSync } from './routers/session-sync.ts'
import { UsableRouters } from './routers/usable-routers.ts'
import { finishRotation, isRotationUnfinished, loadSecretCipher } from './secrets/key-files.ts'
import type { SecretCipher } from './secrets/secret-cipher.ts'
import { reencryptSecrets, requireSecretsKey } from './secrets/stored-secrets.ts'
import { ServiceChanges } from './services/service-changes.ts'
import { ServiceDigests } from './services/service-digests.ts'
import { ServiceLists } from './services/service-lists.ts'
import { AUDIT_KEY_BYTES, AuditSealer } from './store/audit-seal.ts'
import { openSqliteStore } from './store/dialects/sqlite/store.ts'
import { EntityStore } from './store/entities.ts'
import type { Migration } from './store/migrate.ts'
import type { ProjectionError } from './store/projection.ts'
import type { Store } from './store/store.ts'
import { Tunneling } from './tunnelers/tunneling.ts'
import { WatchedClock } from './watched-clock.ts'

export interface Controller {
  readonly config: Config
  readonly clock: WatchedClock
  readonly log: Log
  /** When the process opened this controller. */
  readonly startedAt: Instant
  readonly store: Store
  readonly contexts: Contexts
  readonly entities: EntityStore
  readonly records: Records
  readonly authority: Authority
  readonly certificates: Certificates
  readonly auth: Auth
  readonly enrollments: EnrollmentIssuer
  readonly access: Access
  readonly sessionIds: SessionIds
  readonly serviceChanges: ServiceChanges
  readonly serviceLists: ServiceLists
  readonly posture: Posture
  readonly routers: Routers
  readonly fabric: Fabric
  readonly membership: ControllerMembership
  readonly health: Health
  readonly backups: Backups
  readonly integrity: DataIntegrity
  readonly doctor: Doctor
  /** Writes the state that only memory holds, and closes the store. */
  close(): Promise<void>
}

/** What renders records. */
interface Records {
  readonly behaviors: Behaviors
  readonly references: ReferenceCache
  readonly cache: RecordCache
}

/** The care for certificates. */
interface Certificates {
  readonly own: OwnCertificates
  readonly receipts: RootReceipts
  readonly upkeep: CertificateUpkeep
}

/** What is known of the posture of machines, and what follows from it. */
interface Posture {
  readonly reported: ReportedPosture
  readonly deadlines: PostureDeadlines
  readonly failedRequests: FailedServiceRequests
}

/** What concerns routers beside their records. */
interface Routers {
  readonly provisioner: RouterProvisioner
  readonly renewal: CertificateRenewal
  readonly usable: UsableRouters
  readonly network: LiveNetwork
  readonly load: RouterLoad
  readonly connected: ConnectedRouters
  readonly sessionSync: SessionSync
  readonly tunneling: Tunneling
}

export interface OpenOptions {
  /** Sources of live state, for tests. Defaults to the routers that are connected. */
  readonly live?: LiveState
  /** Stops the process, because memory no longer holds what the database holds. By default an uncaught exception does. */
  readonly fail?: (error: ProjectionError) => void
  readonly directory: string
  readonly config: Config
  readonly clock: Clock
  readonly log: Log
  /** Those of the store, for tests. Defaults to those of this program. */
  readonly migrations?: readonly Migration[]
}

/**
 * Opens the controller of a data directory that was initialized. The caller holds the directory's lock.
 * @throws DataDirectoryError, KeyFileError, and STORAGE_UNAVAILABLE if the database cannot be used; then nothing stays open
 */
export async function openController(options: OpenOptions): Promise<Controller> {
  const { directory, config, clock, log, fail } = options
  const paths = getDataPaths(directory)
  const startedAt = clock.now()
  requireDatabase(directory)
  const { authority, tokens, auditSealer, secretCipher } = runAsOwner(directory, () => ({
    authority: Authority.load(paths.pki, (work) => runAsOwner(directory, work)),
    tokens: ApiSessionTokens.open(paths.tokenKey),
    auditSealer: new AuditSealer(loadKey(paths.auditKey, AUDIT_KEY_BYTES)),
    secretCipher: loadSecretCipher(paths),
  }))
  const backups = new Backups({ directory, config, clock, log })
  const store = await openSqliteStore(paths.database, clock, {
    auditSealer,
    reportError: (error) => log.error({ err: error }, 'the store met a problem'),
    ...(fail ? { fail } : {}),
    maxQueueLength: config['limits.writeQueue'],
    beforeMigration: () => backUpBeforeMigration(backups, log),
    ...(options.migrations ? { migrations: options.migrations } : {}),
  })
  try {
    await requireSecretsKey(store.db, secretCipher, paths.secretsKey)
    const controller = await assemble(options, { startedAt, authority, tokens, store, secretCipher, backups })
    if (isRotationUnfinished(paths)) {
      await reencryptSecrets(controller.contexts.create({ kind: 'system' }), secretCipher)
      runAsOwner(directory, () => finishRotation(paths))
    }
    return controller
  } catch (error) {
    await store.close()
    throw error
  }
}

/** The parts of a controller that are loaded from its directory. */
interface OpenedFiles {
  readonly startedAt: number
  readonly authority: Authority
  readonly tokens: ApiSessionTokens
  readonly secretCipher: SecretCipher
  readonly store: Store
  readonly backups: Backups
}

async function assemble(
  { directory, config, clock: systemClock, log, live: givenLive }: OpenOptions,
  { startedAt, authority, tokens, store, secretCipher, backups }: OpenedFiles,
): Promise<Controller> {
  const clock = new WatchedClock(systemClock)
  await reportStartInPast(store.db, clock)
  const traffic = new LiveTraffic(clock)
  const connected = new ConnectedRouters(clock, traffic)
  const live = givenLive ?? { network: connected, terminators: storedTerminators }
  const records = createRecords()
  const { behaviors, references } = records
  const entities = new EntityStore(behaviors)
  const auth = createAuth({ config, clock, log, authority, tokens, entities, secretCipher })
  const posture: Posture = {
    reported: new ReportedPosture(auth.apiSessions, clock),
    deadlines: new PostureDeadlines(clock, startedAt, config['posture.settleTime']),
    failedRequests: new FailedServiceRequests(),
  }
  const access = new Access(posture.reported, live)
  const { apiSessions, policies, clientTrust, extensionRequests, verifiedMfa, signers } = auth
  // Rights and sessions first: whatever else follows a commit, no request is served by rights that are gone.
  const sessionSync = new SessionSync({ db: store.db, clock, log, apiSessions, connected })
  const peers = new PeerAnnouncements(connected)
  const fabric = createFabric({
    ...{ access, apiSessions, clock, connected, db: store.db, deadlines: posture.deadlines, entities, log, policies },
    ...{ startedAt, traffic },
    createSystemContext: () => contexts.create({ kind: 'system' }),
  })
  const rights = [access, apiSessions, posture.reported, policies, clientTrust, signers.directory, verifiedMfa]
  const network = [connected, peers, sessionSync, ...fabric.projections]
  const sessionIds = new SessionIds(records.cache)
  const digests = new ServiceDigests({ access, cache: records.cache })
  const serviceChanges = new ServiceChanges({ access, clock, digests, startedAt })
  // Setting the clock shifts the times of API sessions, some of which clients are shown with their services.
  clock.onStep(() => access.updates.restart())
  const presentation = [references, records.cache, digests, serviceChanges]
  await store.projections.start(...rights, extensionRequests, ...network, ...presentation)
  if (access.index.hasPostureChecks) await posture.deadlines.load(store.db)
  const enrollments = new EnrollmentIssuer(entities, config, authority)
  const membership = await ControllerMembership.load(store.db, entities, config, authority)
  const receipts = new RootReceipts(authority)
  const own = new OwnCertificates({ authority, config, entities, membership, receipts })
  const certificateBehavior = new CertificateBehavior(references, membership)
  const provisioner = new RouterProvisioner(entities, config)
  const routers: Routers = {
    provisioner,
    renewal: new CertificateRenewal(entities, authority),
    usable: new UsableRouters(access, live.network),
    network: live.network,
    load: {
      countLinks: (routerId) => fabric.links.countOfRouter(routerId),
      countCircuits: (routerId) => fabric.circuits.count('routerId', routerId),
    },
    connected,
    sessionSync,
    tunneling: new Tunneling({
      ...{ access, apiSessions, behaviors, entities, posture, provisioner, serviceChanges, sessionIds, sessionSync },
    }),
  }
  registerBehaviors(behaviors, { access, auth, certificateBehavior, enrollments, membership, references, routers })
  const guards = createGuards({ access, auth, clock, deadlines: posture.deadlines, entities, receipts })
  const contexts = new Contexts(store, clock, guards)
  const warnBeforeMs = config['certificates.warnBefore']
  const integrity = new DataIntegrity({
    files: getDataPaths(directory),
    store,
    clock,
    log,
    repairs: new Repairs(entities, store, log),
    backUp: () => backups.create('snapshot'),
  })
  const upkeep = new CertificateUpkeep({ authority, own, behavior: certificateBehavior, log, warnBeforeMs })
  const minFreeBytes = config['health.minFreeDisk']
  return {
    config,
    clock,
    log,
    startedAt,
    store,
    contexts,
    entities,
    records,
    authority,
    certificates: { own, receipts, upkeep },
    auth,
    enrollments,
    access,
    sessionIds,
    serviceChanges,
    serviceLists: new ServiceLists({ access, changes: serviceChanges }),
    posture,
    routers,
    fabric,
    membership,
    health: new Health({ store, authority, clock, log, directory, minFreeBytes }),
    backups,
    integrity,
    doctor: new Doctor({ directory, config, store, authority, access, signers, backups }),
    close: () => closeParts({ store, contexts, auth, sessionSync, backups, integrity }),
  }
}

/** What the guards of transactions work with. */
interface GuardCollaborators {
  readonly access: Access
  readonly auth: Auth
  readonly clock: Clock
  readonly deadlines: PostureDeadlines
  readonly entities: EntityStore
  readonly receipts: RootReceipts
}

/**
 * The guards of every transaction, in their order: the rights of the caller come first, and sessions are revoked only for changes
 * that no guard refuses.
 */
function createGuards({
  access,
  auth,
  clock,
  deadlines,
  entities,
  receipts,
}: GuardCollaborators): readonly TransactionGuard[] {
  return [
    { before: (caller, earlierChanges) => requireSameRights(auth, caller, earlierChanges, clock.now()) },
    { after: (tx, _earlierChanges, ownChanges) => requireUsableAdministrator(tx, ownChanges) },
    {
      after: (tx, earlierChanges, ownChanges) => revokeSessions({ access, deadlines }, tx, earlierChanges, ownChanges),
    },
    { after: (tx, _earlierChanges, ownChanges) => updateInventory(entities, tx, ownChanges) },
    { after: (tx, _earlierChanges, ownChanges) => receipts.follow(tx, ownChanges) },
  ]
}

/** The parts of a controller that hold state which is not written yet, or work in the background. */
interface ClosableParts {
  readonly store: Store
  readonly contexts: Contexts
  readonly auth: Auth
  readonly sessionSync: SessionSync
  readonly backups: Backups
  readonly integrity: DataIntegrity
}

/** Ends background work, writes what only memory holds, and closes the store last. @throws the first error of a part */
async function closeParts({ store, contexts, auth, sessionSync, backups, integrity }: ClosableParts): Promise<void> {
  const { apiSessions, failedSignIns, signers, signIns } = auth
  const resources = new OpenResources()
  resources.add(() => store.close())
  for (const recorder of [signIns, failedSignIns]) resources.add(() => recorder.flush(contexts, { isFinal: true }))
  resources.add(() => apiSessions.flush(contexts.create({ kind: 'system' })))
  resources.add(() => sessionSync.close())
  resources.add(() => signers.outbound.close())
  resources.add(() => backups.close())
  resources.add(() => integrity.close())
  const [failure] = await resources.close()
  if (failure !== undefined) throw failure
}

/** A migration cannot be undone, but the data before it can be restored. */
async function backUpBeforeMigration(backups: Backups, log: Log): Promise<void> {
  const { file } = await backups.create('migration')
  log.info({ file }, 'made a backup before the migration of the database')
}

function createRecords(): Records {
  const behaviors = new Behaviors()
  const references = new ReferenceCache()
  return { behaviors, references, cache: new RecordCache({ behaviors, references }) }
}
