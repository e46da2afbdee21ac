// The controller: everything that a request, an offline command or a background job works with.
import type { Access } from '../access/access.ts'
import type { LiveNetwork, RouterLoad } from '../access/live-network.ts'
import type { PostureDeadlines } from '../access/posture/posture-deadlines.ts'
import type { ReportedPosture } from '../access/posture/reported-posture.ts'
import type { ServiceChanges } from '../access/services/service-changes.ts'
import type { SessionIds } from '../access/sessions/session-ids.ts'
import type { SessionTokens } from '../access/sessions/session-tokens.ts'
import type { Auth } from '../authentication/auth.ts'
import type { EnrollmentIssuer } from '../authentication/enrollment/enrollments.ts'
import type { OpenIdConnect } from '../authentication/openid-connect/open-id-parts.ts'
import type { RegisteredUris } from '../authentication/openid-connect/registered-uris.ts'
import type { TicketKeys } from '../authentication/tokens/ticket-keys.ts'
import type { TokenKeys } from '../authentication/tokens/token-keys.ts'
import type { AggregatedLog } from '../foundation/aggregated-log.ts'
import type { Instant } from '../foundation/clock.ts'
import type { Log } from '../foundation/log.ts'
import type { WatchedClock } from '../foundation/watched-clock.ts'
import type { Backups } from '../maintenance/backup/backups.ts'
import type { OwnCertificates } from '../maintenance/certificates/own-certificates.ts'
import type { RootReceipts } from '../maintenance/certificates/root-receipts.ts'
import type { CertificateUpkeep } from '../maintenance/certificates/upkeep.ts'
import type { Doctor } from '../maintenance/doctor/doctor.ts'
import type { EventFeed } from '../maintenance/events/event-feed.ts'
import type { Health } from '../maintenance/health.ts'
import type { DataIntegrity } from '../maintenance/integrity/data-integrity.ts'
import type { RunningApplies } from '../maintenance/network-file/running-applies.ts'
import type { WebhookDeliveries } from '../maintenance/webhooks/webhook-deliveries.ts'
import type { ControllerList } from '../network/controllers/controller-list.ts'
import type { ControllerMembership } from '../network/controllers/membership.ts'
import type { Fabric } from '../network/fabric.ts'
import type { RouterModel } from '../network/router-model/router-model.ts'
import type { SilentSources } from '../network/router-model/silent-sources.ts'
import type { CertificateRenewal } from '../network/routers/certificate-renewal.ts'
import type { ConnectedRouters } from '../network/routers/connected-routers.ts'
import type { EndedSessions } from '../network/routers/ended-sessions.ts'
import type { OidcAnnouncement } from '../network/routers/oidc-announcement.ts'
import type { PublicKeys } from '../network/routers/public-keys.ts'
import type { RouterProvisioner } from '../network/routers/router-provisioner.ts'
import type { SessionSync } from '../network/routers/session-sync.ts'
import type { SharedPresence } from '../network/routers/shared-presence.ts'
import type { UsableRouters } from '../network/routers/usable-routers.ts'
import type { Tunneling } from '../network/tunnelers/tunneling.ts'
import type { Authority } from '../pki/authority.ts'
import type { FailedServiceRequests } from '../policy/posture/failed-service-requests.ts'
import type { Config } from '../settings/settings.ts'
import type { Behaviors } from '../storage/behavior.ts'
import type { Cluster } from '../storage/cluster/cluster.ts'
import type { EntityStore } from '../storage/entities/entities.ts'
import type { RecordCache } from '../storage/records/record-cache.ts'
import type { Store } from '../storage/store.ts'
import type { Contexts } from '../storage/transactions/contexts.ts'

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
export interface Records {
  readonly behaviors: Behaviors
  readonly cache: RecordCache
}

/** The care for certificates. */
export interface Certificates {
  readonly own: OwnCertificates
  readonly receipts: RootReceipts
  readonly upkeep: CertificateUpkeep
}

/** The reported posture of machines, and the parts that follow from it. */
export interface Posture {
  readonly reported: ReportedPosture
  readonly deadlines: PostureDeadlines
  readonly failedRequests: FailedServiceRequests
}

/** The parts for routers, besides their records. */
export interface Routers {
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
  /** Undefined if this controller is alone. */
  readonly silentSources: SilentSources | undefined
  readonly sessionSync: SessionSync
  readonly endedSessions: EndedSessions
  /** Whether sign-in by OpenID Connect is announced to clients. */
  readonly oidc: OidcAnnouncement
  readonly tunneling: Tunneling
}
