// Composes the controller: everything that a request, an offline command or a background job works with.

import { Access } from './access/access.ts'
import type { LiveNetwork, RouterLoad } from './access/live-network.ts'
import { type LiveSources, storedTerminators } from './access/live-state.ts'
import { PostureDeadlines } from './access/posture/posture-deadlines.ts'
import { ReportedPosture } from './access/posture/reported-posture.ts'
import { ServiceChanges } from './access/services/service-changes.ts'
import { ServiceDigests } from './access/services/service-digests.ts'
import { revokeSessions } from './access/sessions/revoke-sessions.ts'
import { SessionIds } from './access/sessions/session-ids.ts'
import { SessionTokens } from './access/sessions/session-tokens.ts'
import { requireUsableAdministrator } from './authentication/administrators/administrators.ts'
import { ApiSessionTokens } from './authentication/api-sessions/api-session-tokens.ts'
import { requireSameRights } from './authentication/api-sessions/require-same-rights.ts'
import { revokeApiSessions } from './authentication/api-sessions/revoke-api-sessions.ts'
import { type Auth, createAuth } from './authentication/auth.ts'
import type { PasswordCost } from './authentication/credentials/password-hasher.ts'
import { EnrollmentIssuer } from './authentication/enrollment/enrollments.ts'
import { createOpenIdConnect, type OpenIdConnect } from './authentication/openid-connect/open-id-parts.ts'
import { RegisteredUris } from './authentication/openid-connect/registered-uris.ts'
import { requireNoEscalation } from './authentication/permissions/require-no-escalation.ts'
import { TicketKeys } from './authentication/tokens/ticket-keys.ts'
import { TokenKeys } from './authentication/tokens/token-keys.ts'
import { registerBehaviors } from './behaviors/behaviors.ts'
import { AggregatedLog } from './foundation/aggregated-log.ts'
import type { Clock, Instant } from './foundation/clock.ts'
import type { Log } from './foundation/log.ts'
import { OpenResources } from './foundation/open-resources.ts'
import { WatchedClock } from './foundation/watched-clock.ts'
import { Backups } from './maintenance/backup/backups.ts'
import { CertificateBehavior } from './maintenance/certificates/certificate-behavior.ts'
import { updateInventory } from './maintenance/certificates/inventory.ts'
import { OwnCertificates } from './maintenance/certificates/own-certificates.ts'
import { RootReceipts } from './maintenance/certificates/root-receipts.ts'
import { CertificateUpkeep } from './maintenance/certificates/upkeep.ts'
import { Doctor } from './maintenance/doctor/doctor.ts'
import { EventFeed } from './maintenance/events/event-feed.ts'
import { feedNetworkEvents } from './maintenance/events/network-events.ts'
import { UnauditedChanges } from './maintenance/events/unaudited-changes.ts'
import { Health } from './maintenance/health.ts'
import { DataIntegrity } from './maintenance/integrity/data-integrity.ts'
import { Repairs } from './maintenance/integrity/repairs.ts'
import { RunningApplies } from './maintenance/network-file/running-applies.ts'
import type { WebhookDeliveries } from './maintenance/webhooks/webhook-deliveries.ts'
import { createWebhooks } from './maintenance/webhooks/webhooks.ts'
import { ControllerList } from './network/controllers/controller-list.ts'
import { HeadStart } from './network/controllers/head-start.ts'
import { ControllerMembership } from './network/controllers/membership.ts'
import { createFabric, type Fabric } from './network/fabric.ts'
import { ModelLog } from './network/router-model/model-log.ts'
import { revokeTokens } from './network/router-model/revocations.ts'
import { RouterModel } from './network/router-model/router-model.ts'
import { CertificateRenewal } from './network/routers/certificate-renewal.ts'
import { ConnectedRouters } from './network/routers/connected-routers.ts'
import { EndedSessions } from './network/routers/ended-sessions.ts'
import { OidcAnnouncement } from './network/routers/oidc-announcement.ts'
import { PeerAnnouncements } from './network/routers/peer-announcements.ts'
import { PublicKeys } from './network/routers/public-keys.ts'
import { RouterProvisioner } from './network/routers/router-provisioner.ts'
import { SessionSync } from './network/routers/session-sync.ts'
import { SharedPresence } from './network/routers/shared-presence.ts'
import { UsableRouters } from './network/routers/usable-routers.ts'
import { LiveTraffic } from './network/traffic.ts'
import { Tunneling } from './network/tunnelers/tunneling.ts'
import { Authority } from './pki/authority.ts'
import { loadKey } from './pki/files.ts'
import { FailedServiceRequests } from './policy/posture/failed-service-requests.ts'
import { getAdvertisedAddress } from './settings/addresses.ts'
import { getDataPaths, requireDatabase, runAsOwner } from './settings/data-directory.ts'
import type { Config } from './settings/settings.ts'
import { CLUSTER_CHANGE } from './storage/audit/audit.ts'
import { AUDIT_KEY_BYTES, AuditSealer } from './storage/audit/audit-seal.ts'
import { Behaviors } from './storage/behavior.ts'
import { reportStartInPast } from './storage/clock-jumps.ts'
import { Cluster } from './storage/cluster/cluster.ts'
import { digestEqualSettings, requireEqualSettings } from './storage/cluster/equal-settings.ts'
import { findLogPlace } from './storage/cluster/log-place.ts'
import { describeRebuild, type KeptRebuild } from './storage/cluster/rebuild.ts'
import { ROTATION_END } from './storage/cluster/shared-files.ts'
import type { CommitLog } from './storage/commit-log.ts'
import { EntityStore } from './storage/entities/entities.ts'
import { MIGRATIONS, type Migration } from './storage/migrate.ts'
import { RecordCache } from './storage/records/record-cache.ts'
import { finishRotation, isRotationUnfinished, loadSecretCipher } from './storage/secrets/key-files.ts'
import type { SecretCipher } from './storage/secrets/secret-cipher.ts'
import { reencryptSecrets, requireSecretsKey } from './storage/secrets/stored-secrets.ts'
import { crash, openSqliteStore } from './storage/sqlite/sqlite-store.ts'
import type { Store } from './storage/store.ts'
import { Contexts, type TransactionGuard } from './storage/transactions/contexts.ts'

// Of the time in which a request has to be responded to: how long its change may wait for its turn.
const MAX_QUEUE_SHARE = 0.5

export interface Controller {
  /** The data directory. */
  readonly directory: string
  readonly config: Config
  readonly clock: WatchedClock
  readonly log: Log
  /** Takes the lines that clients and routers can cause as often as they like. */
  readonly aggregatedLog: AggregatedLog
  /** When the process opened this controller. */
  readonly startedAt: Instant
  readonly store: Store
  /** The controllers with which this one shares its log; undefined if it is alone. */
  readonly cluster: Cluster | undefined
  readonly contexts: Contexts
  readonly entities: EntityStore
  readonly records: Records
  readonly authority: Authority
  readonly certificates: Certificates
  readonly auth: Auth
  /** The keys by which the controller signs tokens of its own. */
  readonly tokenKeys: TokenKeys
  readonly ticketKeys: TicketKeys
  /** The addresses that clients may be sent to after they signed in or out by OpenID Connect. */
  readonly registeredUris: RegisteredUris
  readonly openIdConnect: OpenIdConnect
  readonly enrollments: EnrollmentIssuer
  readonly access: Access
  readonly sessionIds: SessionIds
  readonly sessionTokens: SessionTokens
  readonly serviceChanges: ServiceChanges
  readonly posture: Posture
  readonly routers: Routers
  readonly fabric: Fabric
  readonly membership: ControllerMembership
  readonly health: Health
  readonly backups: Backups
  readonly integrity: DataIntegrity
  readonly doctor: Doctor
  /** The events that administrators watch. */
  readonly events: EventFeed
  readonly webhooks: WebhookDeliveries
  /** Of one of several controllers: what is sent to webhooks by each of them. */
  readonly observedWebhooks: WebhookDeliveries | undefined
  readonly applies: RunningApplies
  /** Writes the state that only memory holds, and closes the store. */
  close(): Promise<void>
}

/** The parts that render records. */
interface Records {
  readonly behaviors: Behaviors
  readonly cache: RecordCache
}

/** The care for certificates. */
interface Certificates {
  readonly own: OwnCertificates
  readonly receipts: RootReceipts
  readonly upkeep: CertificateUpkeep
}

/** The reported posture of machines, and the parts that follow from it. */
interface Posture {
  readonly reported: ReportedPosture
  readonly deadlines: PostureDeadlines
  readonly failedRequests: FailedServiceRequests
}

/** The parts for routers, besides their records. */
interface Routers {
  readonly provisioner: RouterProvisioner
  readonly renewal: CertificateRenewal
  readonly usable: UsableRouters
  readonly network: LiveNetwork
  /** Presence as all controllers of a cluster know it; undefined if this one is alone. */
  readonly presence: SharedPresence | undefined
  readonly load: RouterLoad
  readonly connected: ConnectedRouters
  /** The addresses at which routers reach the controllers of a cluster. */
  readonly controllers: ControllerList
  readonly publicKeys: PublicKeys
  readonly model: RouterModel
  readonly sessionSync: SessionSync
  readonly endedSessions: EndedSessions
  /** Whether sign-in by OpenID Connect is announced to clients. */
  readonly oidc: OidcAnnouncement
  readonly tunneling: Tunneling
}

export interface OpenOptions {
  /** Sources of live state, for tests. Defaults to the routers that are connected. */
  readonly live?: LiveSources
  /** Stops the process, because its memory no longer matches the commits. By default, an uncaught exception stops it. */
  readonly fail?: (error: Error) => void
  /** The log in which commits become durable, for tests. Defaults to what the settings name. */
  readonly commitLog?: CommitLog
  readonly directory: string
  readonly config: Config
  readonly clock: Clock
  readonly log: Log
  /** Whether the time is that of the database that controllers share; false in tests whose clocks stand still. Defaults to true. */
  readonly followsDatabaseTime?: boolean
  /** Whether it may differ from the other controllers of the network in settings that are the same on all. */
  readonly hasOtherSettings?: boolean
  /** Whether it waits until controllers of older releases have stopped, if it needs a newer schema than they know; otherwise it is refused. */
  readonly waitsForOlder?: boolean
  /** Whether rows that the log of the cluster does not lead on from are replaced by those of the log, which is the default. */
  readonly isRebuilt?: boolean
  /** The migrations of the store, for tests. Defaults to the migrations of this program. */
  readonly migrations?: readonly Migration[]
  /** The cost of password hashes, for tests. Defaults to the recommended cost. */
  readonly passwordCost?: PasswordCost
}

/**
 * Opens the controller of a data directory that was initialized. The caller holds the directory's lock.
 * @throws DataDirectoryError, KeyFileError, and STORAGE_UNAVAILABLE if the database cannot be used; then nothing stays open
 */
export async function openController(options: OpenOptions): Promise<Controller> {
  const { directory, config, log, fail, followsDatabaseTime = true } = options
  const paths = getDataPaths(directory)
  requireDatabase(directory)
  const auditSealer = runAsOwner(directory, () => new AuditSealer(loadKey(paths.auditKey, AUDIT_KEY_BYTES)))
  const place = findLogPlace(directory, config)
  const { migrations = MIGRATIONS, isRebuilt = true } = options
  const clusterParts = {
    ...{ directory, clock: options.clock, followsDatabaseTime, log, fail: fail ?? crash, migrations },
    isRebuilt,
  }
  const cluster = place && (await Cluster.connect(place, clusterParts))
  const clock = cluster?.clock ?? options.clock
  const startedAt = clock.now()
  const backups = new Backups({ directory, config, clock, log })
  const beforeMigration = () => backUpBeforeMigration(backups, log)
  await cluster
    ?.upgradeSchema({ migrations, isWaiting: options.waitsForOlder ?? false, beforeMigration })
    .catch(async (error: unknown) => {
      await cluster.close()
      throw error
    })
  const commitLog = options.commitLog ?? cluster?.commitLog
  const store = await openSqliteStore(paths.database, clock, {
    auditSealer,
    reportError: (error) => log.error({ err: error }, 'the store met a problem'),
    ...(cluster ? { fail: (error) => cluster.fail(error) } : fail ? { fail } : {}),
    maxQueueLength: config['limits.writeQueue'],
    maxQueueMs: config['limits.answerTime'] * MAX_QUEUE_SHARE,
    beforeMigration,
    ...(commitLog ? { log: commitLog } : {}),
    migrations,
    ...(cluster ? { observer: cluster.comparison } : {}),
  })
  try {
    // Before anything is read into memory, and before the keys and certificates that the controllers share are.
    await cluster?.join(store)
    await cluster?.files.rebuild(store.db)
    if (cluster && !options.hasOtherSettings) await requireEqualSettings(store.db, config)
    const { authority, tokens, secretCipher } = runAsOwner(directory, () => ({
      authority: Authority.load(paths.pki, (work) => runAsOwner(directory, work)),
      tokens: ApiSessionTokens.open(paths.tokenKey),
      secretCipher: loadSecretCipher(paths),
    }))
    cluster?.files.onChange((names) => followSharedFiles(names, authority, fail ?? crash))
    await requireSecretsKey(store.db, secretCipher, paths.secretsKey)
    const controller = await assemble(
      { ...options, clock },
      {
        ...{ startedAt, authority, tokens, store, cluster, secretCipher, backups },
        isShared: commitLog?.isDeciding === true,
      },
    )
    if (isRotationUnfinished(paths)) {
      const context = controller.contexts.create({ kind: 'system' })
      await reencryptSecrets(context, secretCipher)
      if (cluster) await context.write((tx) => cluster.files.store(controller.entities, tx, ROTATION_END))
      else runAsOwner(directory, () => finishRotation(paths))
    }
    if (cluster?.rebuild) await reportRebuild(controller, cluster.rebuild)
    cluster?.follow(store)
    return controller
  } catch (error) {
    await store.close()
    await cluster?.close()
    throw error
  }
}

/** The operator finds it in the log, and everyone in the audit. */
async function reportRebuild({ contexts, cluster, log }: Controller, rebuild: KeptRebuild): Promise<void> {
  const { folder, isRestore, lostRecords } = rebuild
  const reason = describeRebuild(rebuild)
  if (lostRecords.count > 0 && !isRestore) log.error({ folder, lostRecords }, reason)
  else log.warn({ folder }, reason)
  const { caller, origin } = contexts.create({ kind: 'system' })
  const event = {
    ...CLUSTER_CHANGE,
    operation: 'update',
    id: String(cluster?.name),
    method: 'rebuild',
    reason,
  } as const
  await contexts.recordEvent(caller, origin, {
    ...event,
    ...(lostRecords.count > 0 ? { count: lostRecords.count } : {}),
  })
}

/** Reads files again that another controller, or this one, has changed for all. */
function followSharedFiles(names: readonly string[], authority: Authority, fail: (error: Error) => void): void {
  if (names.some((name) => name.startsWith('pki/'))) authority.reload()
  if (names.some((name) => !name.startsWith('pki/')))
    fail(new Error('the keys of the network were replaced, and are read only at the start'))
}

/** The parts of a controller that are loaded from its directory. */
interface OpenedFiles {
  readonly startedAt: number
  readonly authority: Authority
  readonly tokens: ApiSessionTokens
  readonly secretCipher: SecretCipher
  readonly store: Store
  readonly cluster: Cluster | undefined
  readonly backups: Backups
  /** Whether other controllers have the same rows. */
  readonly isShared: boolean
}

async function assemble(
  { directory, config, clock: systemClock, log, live: givenLive, passwordCost }: OpenOptions,
  { startedAt, authority, tokens, store, cluster, secretCipher, backups, isShared }: OpenedFiles,
): Promise<Controller> {
  const clock = new WatchedClock(systemClock)
  await reportStartInPast(store.db, clock)
  const aggregatedLog = new AggregatedLog(clock, log)
  const traffic = new LiveTraffic(clock)
  const connected = new ConnectedRouters(clock, traffic)
  const createSystemContext = () => contexts.create({ kind: 'system' })
  const listLiveNodes = () => cluster?.listLiveNames() ?? []
  const presence =
    cluster && new SharedPresence({ clock, connected, log, node: cluster.name, listLiveNodes, createSystemContext })
  const isLeading = () => presence?.isHere ?? true
  const catchUp = cluster && (() => cluster.catchUp())
  const live = givenLive ?? { network: presence ?? connected, terminators: storedTerminators }
  const records = createRecords()
  // The JWTs that records show name the server certificate.
  authority.onChange(() => records.cache.clear())
  const { behaviors } = records
  const entities = new EntityStore(behaviors)
  const auth = createAuth({
    ...{ config, clock, log, authority, tokens, entities, secretCipher, passwordCost },
    countControllers: () => cluster?.nodes.liveCount ?? 1,
    isShared,
  })
  const posture: Posture = {
    reported: new ReportedPosture(auth.apiSessions, clock),
    deadlines: new PostureDeadlines(clock),
    failedRequests: new FailedServiceRequests(),
  }
  const access = new Access(posture.reported, live)
  const { apiSessions, machineTokens, policies, clientTrust, extensionRequests, verifiedMfa, signers } = auth
  // Rights and sessions first: whatever else follows a commit, no request is served by rights that are gone.
  const sessionSync = new SessionSync({
    ...{ db: store.db, clock, log, apiSessions, connected, isLeading, catchUp },
    listConnectedIdentityIds: () => presence?.listConnectedIdentityIds() ?? [],
  })
  const peers = new PeerAnnouncements(connected, presence)
  const controllerList = new ControllerList(connected)
  const headStart = new HeadStart({ clock, connected, presence, controllers: controllerList })
  cluster?.silence.onChange((isAny) => headStart.follow(isAny))
  const tokenKeys = new TokenKeys({ authority, cipher: secretCipher, clock, entities })
  const ticketKeys = new TicketKeys({ cipher: secretCipher, entities })
  // The foreign intermediates that clients presented are in memory only, and resumed sessions come without them.
  auth.presentedIssuers.onIntermediatesChange(() => ticketKeys.confineToProcess())
  const openIdConnect = createOpenIdConnect({
    ...{ auth, catchUp, clock, config, db: store.db, tokenKeys },
    key: tokens.deriveKey('sign-ins by OpenID Connect'),
  })
  const sessionTokens = new SessionTokens({
    ...{ apiSessions, clock, entities, keys: tokenKeys },
    issuer: `https://${getAdvertisedAddress(config)}`,
  })
  const endedSessions = new EndedSessions({
    ...{ clock, connected, db: store.db, isLeading, log, sessionSync, sessionTokens },
    createSystemContext,
  })
  presence?.addObserver({ nodeLost: () => endedSessions.noteUnknownCircuits() })
  const publicKeys = new PublicKeys({ authority, clientTrust, connected, tokenKeys })
  const modelLog = new ModelLog({
    isNeeded: () => sessionTokens.areSigned,
    ...{ access, clock, log, db: store.db },
    findRemovedKeys: (changes) => publicKeys.findRemoved(changes),
  })
  const model = new RouterModel({ clock, log, store, changes: modelLog, connected, publicKeys })
  const fabric = createFabric({
    ...{
      access,
      accessTokens: openIdConnect.accessTokens,
      apiSessions,
      clock,
      connected,
      db: store.db,
      entities,
      log,
      policies,
    },
    ...{ aggregatedLog, circuitKey: tokens.deriveKey('circuit ids'), sessionTokens, startedAt, traffic },
    ...{ node: cluster?.name, catchUp, isLeading },
    takesRouters: () => cluster?.lease.isHeld ?? true,
    listNodesOf: (routerId: string) => presence?.listNodesOf(routerId) ?? [],
    listIdsElsewhere: () => presence?.listIdsElsewhere() ?? [],
    listLiveNodes: () => listLiveNodes().filter((name) => name !== cluster?.name),
    createSystemContext,
  })
  const oidc = new OidcAnnouncement(config['oidc.announce'])
  const registeredUris = new RegisteredUris(() => membership.ownId)
  const rights = [
    // First: they say which certificates are trusted.
    ...(cluster ? [cluster.files] : []),
    ...[access, apiSessions, machineTokens, posture.reported, policies, clientTrust, signers.directory, verifiedMfa],
    ...[tokenKeys, ticketKeys, openIdConnect.revokedTokens, sessionTokens, oidc, registeredUris],
  ]
  const network = [
    connected,
    ...(presence ? [presence] : []),
    peers,
    controllerList,
    publicKeys,
    model,
    sessionSync,
    endedSessions,
    ...fabric.projections,
  ]
  const sessionIds = new SessionIds(records.cache)
  const digests = new ServiceDigests({ access, cache: records.cache })
  const serviceChanges = new ServiceChanges({ access, clock, digests })
  clock.onStep(() => serviceChanges.noteClockStep())
  const presentation = [records.cache, digests, serviceChanges, openIdConnect.accessTokens]
  const events = new EventFeed({ db: store.db, clock, log })
  feedNetworkEvents(events, { connected, links: fabric.links, circuits: fabric.circuits }, cluster?.name)
  const unauditedChanges = new UnauditedChanges({ access, apiSessions, feed: events })
  const webhookParts = { cipher: secretCipher, clock, db: store.db, events, log }
  const webhooks = createWebhooks(config, webhookParts, cluster !== undefined)
  const senders = [webhooks.deliveries, ...(webhooks.observed ? [webhooks.observed] : [])]
  const watching = [unauditedChanges, posture.deadlines, events, ...senders]
  await store.projections.start(...rights, extensionRequests, ...network, ...presentation, ...watching)
  store.recordBy(modelLog, endedSessions, controllerList, posture.deadlines, ...(cluster ? [cluster.comparison] : []))
  const enrollments = new EnrollmentIssuer({
    ...{ entities, config, authority },
    listControlAddresses: () => (oidc.isActive ? controllerList.addresses : []),
  })
  // The JWTs that records show name the controllers.
  for (const source of [oidc, controllerList]) source.onChange(() => records.cache.clear())
  const membership = await ControllerMembership.load({
    ...{ db: store.db, entities, config, authority },
    node: cluster?.name,
    isLive: (node) => listLiveNodes().includes(node),
  })
  const settings = digestEqualSettings(config)
  cluster?.nodes.describeBy(() => ({ settings, routers: connected.size }))
  const receipts = new RootReceipts(authority, log)
  const own = new OwnCertificates({
    ...{ authority, config, entities, membership, receipts, log },
    shared: cluster?.files,
  })
  const certificateBehavior = new CertificateBehavior(membership)
  const provisioner = new RouterProvisioner(entities, config)
  const routers: Routers = {
    provisioner,
    renewal: new CertificateRenewal(entities, authority, config['adoption.trialEnds']),
    usable: new UsableRouters(access, live.network),
    network: live.network,
    presence,
    load: {
      countLinks: (routerId) => fabric.links.countOfRouter(routerId),
      countCircuits: (routerId) => fabric.circuits.count('routerId', routerId),
    },
    connected,
    controllers: controllerList,
    publicKeys,
    model,
    sessionSync,
    endedSessions,
    oidc,
    tunneling: new Tunneling({
      ...{ access, apiSessions, behaviors, entities, posture, provisioner, serviceChanges, sessionIds, sessionSync },
      sessionTokens,
    }),
  }
  registerBehaviors(behaviors, {
    ...{ access, auth, certificateBehavior, enrollments, membership, routers, sessionTokens },
    webhookBehavior: webhooks.behavior,
  })
  const guards = createGuards({ access, auth, posture, entities, receipts, sessionTokens })
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
  const upkeep = new CertificateUpkeep({
    ...{ authority, own, receipts, events, log, warnBeforeMs },
    behavior: certificateBehavior,
  })
  const minFreeBytes = config['health.minFreeDisk']
  return {
    directory,
    config,
    clock,
    log,
    aggregatedLog,
    startedAt,
    store,
    cluster,
    contexts,
    entities,
    records,
    authority,
    certificates: { own, receipts, upkeep },
    auth,
    tokenKeys,
    ticketKeys,
    registeredUris,
    openIdConnect,
    enrollments,
    access,
    sessionIds,
    sessionTokens,
    serviceChanges,
    posture,
    routers,
    fabric,
    membership,
    health: new Health({ store, cluster, authority, clock, log, directory, minFreeBytes }),
    backups,
    integrity,
    applies: new RunningApplies(),
    doctor: new Doctor({
      directory,
      config,
      store,
      cluster,
      authority,
      access,
      signers,
      backups,
      oidc,
      webhooks: webhooks.deliveries,
    }),
    events,
    webhooks: webhooks.deliveries,
    observedWebhooks: webhooks.observed,
    close: () =>
      closeParts({
        store,
        cluster,
        contexts,
        aggregatedLog,
        auth,
        model,
        presence,
        sessionSync,
        backups,
        integrity,
        webhooks: webhooks.deliveries,
      }),
  }
}

/** The collaborators of the guards of transactions. */
interface GuardParts {
  readonly access: Access
  readonly auth: Auth
  readonly posture: Posture
  readonly entities: EntityStore
  readonly receipts: RootReceipts
  readonly sessionTokens: SessionTokens
}

/**
 * The guards of every transaction, in their order: the rights of the caller come first, and sessions are revoked only for changes
 * that no guard refuses.
 */
function createGuards({
  access,
  auth,
  posture,
  entities,
  receipts,
  sessionTokens,
}: GuardParts): readonly TransactionGuard[] {
  return [
    { before: (tx) => requireSameRights(auth, tx) },
    { after: requireNoEscalation },
    { after: requireUsableAdministrator },
    { after: (tx) => revokeApiSessions(auth.apiSessions, tx) },
    { after: (tx) => revokeTokens({ apiSessions: auth.apiSessions, sessionTokens }, tx) },
    { after: (tx) => revokeSessions({ access, deadlines: posture.deadlines, entities }, tx) },
    { after: (tx) => posture.reported.removeSignedOut(tx) },
    { after: (tx) => updateInventory(entities, tx, tx.uncommitted.own) },
    { after: (tx) => receipts.follow(tx) },
  ]
}

/** The parts of a controller that hold state which is not written yet, or work in the background. */
interface ClosableParts {
  readonly store: Store
  readonly cluster: Cluster | undefined
  readonly contexts: Contexts
  readonly aggregatedLog: AggregatedLog
  readonly auth: Auth
  readonly model: RouterModel
  readonly presence: SharedPresence | undefined
  readonly sessionSync: SessionSync
  readonly backups: Backups
  readonly integrity: DataIntegrity
  readonly webhooks: WebhookDeliveries
}

/** Ends background work, writes what only memory holds, and closes the store last. @throws the first error of a part */
async function closeParts(parts: ClosableParts): Promise<void> {
  const { store, cluster, contexts, aggregatedLog, auth, model, presence, sessionSync, backups, integrity, webhooks } =
    parts
  const { apiSessions, failedSignIns, machineTokens, signers, signIns } = auth
  const resources = new OpenResources()
  resources.add(() => aggregatedLog.flush({ isFinal: true }))
  resources.add(() => cluster?.close())
  resources.add(() => store.close())
  for (const recorder of [signIns, failedSignIns]) resources.add(() => recorder.flush(contexts, { isFinal: true }))
  for (const uses of [apiSessions, machineTokens]) resources.add(() => uses.flush(contexts.create({ kind: 'system' })))
  resources.add(() => webhooks.flush(contexts.create({ kind: 'system' })))
  resources.add(() => webhooks.close())
  resources.add(() => sessionSync.close())
  resources.add(() => model.close())
  resources.add(() => presence?.close())
  resources.add(() => signers.outbound.close())
  resources.add(() => backups.close())
  resources.add(() => integrity.close())
  resources.add(() => cluster?.stopFollowing())
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
  return { behaviors, cache: new RecordCache({ behaviors }) }
}
