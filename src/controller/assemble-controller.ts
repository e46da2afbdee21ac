// Composes the controller of its parts: each is given what it works with, and nothing else.
import { Access } from '../access/access.ts'
import { storedTerminators } from '../access/live-state.ts'
import { PostureDeadlines } from '../access/posture/posture-deadlines.ts'
import { ReportedPosture } from '../access/posture/reported-posture.ts'
import { ServiceChanges } from '../access/services/service-changes.ts'
import { ServiceDigests } from '../access/services/service-digests.ts'
import { SessionIds } from '../access/sessions/session-ids.ts'
import { SessionTokens } from '../access/sessions/session-tokens.ts'
import type { ApiSessionTokens } from '../authentication/api-sessions/api-session-tokens.ts'
import { createAuth } from '../authentication/auth.ts'
import { EnrollmentIssuer } from '../authentication/enrollment/enrollments.ts'
import { createOpenIdConnect } from '../authentication/openid-connect/open-id-parts.ts'
import { RegisteredUris } from '../authentication/openid-connect/registered-uris.ts'
import { TicketKeys } from '../authentication/tokens/ticket-keys.ts'
import { TokenKeys } from '../authentication/tokens/token-keys.ts'
import { AggregatedLog } from '../foundation/aggregated-log.ts'
import { WatchedClock } from '../foundation/watched-clock.ts'
import type { Backups } from '../maintenance/backup/backups.ts'
import { CertificateBehavior } from '../maintenance/certificates/certificate-behavior.ts'
import { OwnCertificates } from '../maintenance/certificates/own-certificates.ts'
import { RootReceipts } from '../maintenance/certificates/root-receipts.ts'
import { CertificateUpkeep } from '../maintenance/certificates/upkeep.ts'
import { Doctor } from '../maintenance/doctor/doctor.ts'
import { EventFeed } from '../maintenance/events/event-feed.ts'
import { feedNetworkEvents } from '../maintenance/events/network-events.ts'
import { UnauditedChanges } from '../maintenance/events/unaudited-changes.ts'
import { Health } from '../maintenance/health.ts'
import { DataIntegrity } from '../maintenance/integrity/data-integrity.ts'
import { Repairs } from '../maintenance/integrity/repairs.ts'
import { RunningApplies } from '../maintenance/network-file/running-applies.ts'
import { createWebhooks } from '../maintenance/webhooks/webhooks.ts'
import { ControllerList } from '../network/controllers/controller-list.ts'
import { HeadStart } from '../network/controllers/head-start.ts'
import { ControllerMembership } from '../network/controllers/membership.ts'
import { createFabric } from '../network/fabric.ts'
import { ModelLog } from '../network/router-model/model-log.ts'
import { RouterModel } from '../network/router-model/router-model.ts'
import { SilentSources } from '../network/router-model/silent-sources.ts'
import { CertificateRenewal } from '../network/routers/certificate-renewal.ts'
import { ConnectedRouters } from '../network/routers/connected-routers.ts'
import { EndedSessions } from '../network/routers/ended-sessions.ts'
import { OidcAnnouncement } from '../network/routers/oidc-announcement.ts'
import { PeerAnnouncements } from '../network/routers/peer-announcements.ts'
import { PublicKeys } from '../network/routers/public-keys.ts'
import { RouterProvisioner } from '../network/routers/router-provisioner.ts'
import { SessionSync } from '../network/routers/session-sync.ts'
import { SharedPresence } from '../network/routers/shared-presence.ts'
import { UsableRouters } from '../network/routers/usable-routers.ts'
import { LiveTraffic } from '../network/traffic.ts'
import { Tunneling } from '../network/tunnelers/tunneling.ts'
import type { Authority } from '../pki/authority.ts'
import { FailedServiceRequests } from '../policy/posture/failed-service-requests.ts'
import { getAdvertisedAddress } from '../settings/addresses.ts'
import { getDataPaths } from '../settings/data-directory.ts'
import { Behaviors } from '../storage/behavior.ts'
import { reportStartInPast } from '../storage/clock-jumps.ts'
import type { Cluster } from '../storage/cluster/cluster.ts'
import { digestEqualSettings } from '../storage/cluster/equal-settings.ts'
import { EntityStore } from '../storage/entities/entities.ts'
import { RecordCache } from '../storage/records/record-cache.ts'
import type { SecretCipher } from '../storage/secrets/secret-cipher.ts'
import type { Store } from '../storage/store.ts'
import { Contexts } from '../storage/transactions/contexts.ts'
import { registerBehaviors } from './behaviors/behaviors.ts'
import { closeParts } from './close-parts.ts'
import type { Controller, Posture, Records, Routers } from './controller.ts'
import type { OpenOptions } from './open-options.ts'
import { createGuards } from './transaction-guards.ts'

/** The parts of a controller that are loaded from its directory. */
export interface OpenedFiles {
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

export async function assembleController(
  { directory, config, clock: systemClock, log, live: givenLive, passwordCost }: OpenOptions,
  { startedAt, authority, tokens, store, cluster, secretCipher, backups, isShared }: OpenedFiles,
): Promise<Controller> {
  const clock = new WatchedClock(systemClock)
  await reportStartInPast(store.db, clock)
  const aggregatedLog = new AggregatedLog(clock, log)
  const traffic = new LiveTraffic(clock)
  const connected = new ConnectedRouters(clock, traffic)
  const createSystemContext = () => contexts.create({ kind: 'system' })
  const listLiveNodes = () => cluster?.listServingNames() ?? []
  const presence =
    cluster && new SharedPresence({ clock, connected, log, node: cluster.name, listLiveNodes, createSystemContext })
  cluster?.lease.onChange((isHeld) => {
    if (isHeld) presence?.repeat()
  })
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
  const silentSources =
    cluster &&
    presence &&
    new SilentSources({
      ...{ clock, connected, listLiveNodes, log, model, presence },
      node: cluster.name,
      listSilentNodes: () => cluster.silence.names,
    })
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
    silentSources,
    sessionSync,
    endedSessions,
    oidc,
    tunneling: new Tunneling({
      ...{ access, apiSessions, behaviors, entities, posture, serviceChanges, sessionIds, sessionSync },
      sessionTokens,
    }),
  }
  registerBehaviors(behaviors, {
    ...{ access, auth, certificateBehavior, enrollments, membership, routers, sessionTokens },
    webhookBehavior: webhooks.behavior,
  })
  const { revokedTokens } = openIdConnect
  const guards = createGuards({ access, auth, posture, entities, receipts, revokedTokens, sessionTokens })
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

function createRecords(): Records {
  const behaviors = new Behaviors()
  return { behaviors, cache: new RecordCache({ behaviors }) }
}
