// The controller without any face: everything that a request, an offline command or a background job works with.
import { Access } from './access/access.ts'
import { type LiveState, unknownLiveState } from './access/live-state.ts'
import { revokeSessions } from './access/session-revocation.ts'
import { requireUsableAdministrator } from './auth/administrators.ts'
import { ApiSessions } from './auth/api-sessions.ts'
import { AuthPolicyCache } from './auth/auth-policies.ts'
import { requireSameRights } from './auth/callers.ts'
import { ClientTrustStore } from './auth/client-trust.ts'
import { ExtensionRequests } from './auth/extension-requests.ts'
import { FailedLoginLimiter } from './auth/failed-sign-ins.ts'
import { PasswordHasher } from './auth/password-hasher.ts'
import { Passwords } from './auth/passwords.ts'
import { SessionTokens } from './auth/session-tokens.ts'
import { SignInRecorder } from './auth/sign-in-recorder.ts'
import { WriteLimits } from './auth/write-limits.ts'
import { Behaviors } from './behavior.ts'
import { registerBehaviors } from './behaviors.ts'
import type { Clock } from './clock.ts'
import { reportStartInPast } from './clock-jumps.ts'
import { type Config, listCertificateHosts } from './config.ts'
import { Contexts } from './contexts.ts'
import { ControllerMembership } from './controllers/membership.ts'
import { getDataPaths, requireDatabase, runAsOwner } from './data-directory.ts'
import { EnrollmentIssuer } from './enrollment/enrollments.ts'
import type { Log } from './log.ts'
import { OpenResources } from './open-resources.ts'
import { Authority } from './pki/authority.ts'
import { loadKey } from './pki/files.ts'
import { RecordCache } from './records/record-cache.ts'
import { ReferenceCache } from './records/reference-cache.ts'
import type { LiveNetwork } from './routers/live-network.ts'
import { Routers } from './routers/routers.ts'
import { Traces } from './routers/traces.ts'
import { UsableRouters } from './routers/usable-routers.ts'
import { ConfigSchemas } from './schema/config-schemas.ts'
import { AUDIT_KEY_BYTES, AuditSealer } from './store/audit-seal.ts'
import { openSqliteStore } from './store/dialects/sqlite/store.ts'
import { EntityStore } from './store/entities.ts'
import type { ProjectionError } from './store/projection.ts'
import type { Store } from './store/store.ts'
import { WatchedClock } from './watched-clock.ts'

export interface Controller {
  readonly config: Config
  readonly clock: WatchedClock
  readonly log: Log
  readonly store: Store
  readonly auditSealer: AuditSealer
  readonly authority: Authority
  readonly access: Access
  readonly sessions: ApiSessions
  readonly authPolicies: AuthPolicyCache
  readonly passwordHasher: PasswordHasher
  readonly passwords: Passwords
  readonly clientTrust: ClientTrustStore
  readonly refusals: FailedLoginLimiter
  readonly signIns: SignInRecorder
  readonly writeLimits: WriteLimits
  readonly enrollments: EnrollmentIssuer
  readonly references: ReferenceCache
  readonly readyRecords: RecordCache
  readonly configSchemas: ConfigSchemas
  readonly membership: ControllerMembership
  readonly network: LiveNetwork
  readonly routers: Routers
  readonly traces: Traces
  readonly behaviors: Behaviors
  readonly usableRouters: UsableRouters
  readonly startedAt: number
  readonly entities: EntityStore
  readonly contexts: Contexts
  /** Writes what memory knows, and closes the store. */
  close(): Promise<void>
}

export interface OpenOptions {
  /** Sources of live state (router presence, posture). Defaults to none. */
  readonly live?: LiveState
  /** Stops the process, because memory no longer holds what the database holds. By default an uncaught exception does. */
  readonly fail?: (error: ProjectionError) => void
  readonly directory: string
  readonly config: Config
  readonly clock: Clock
  readonly log: Log
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
  const { authority, tokens, auditSealer } = runAsOwner(directory, () => ({
    authority: Authority.load(paths.pki, listCertificateHosts(config), startedAt),
    tokens: SessionTokens.open(paths.tokenKey),
    auditSealer: new AuditSealer(loadKey(paths.auditKey, AUDIT_KEY_BYTES)),
  }))
  const store = await openSqliteStore(paths.database, clock, {
    auditSealer,
    reportError: (error) => log.error({ err: error }, 'the store met a problem'),
    ...(fail ? { fail } : {}),
    maxQueueLength: config['limits.writeQueue'],
  })
  try {
    return await assemble(options, { startedAt, authority, tokens, auditSealer, store })
  } catch (error) {
    await store.close()
    throw error
  }
}

/** What a controller is made of that lies in its directory. */
interface OpenedFiles {
  readonly startedAt: number
  readonly authority: Authority
  readonly tokens: SessionTokens
  readonly auditSealer: AuditSealer
  readonly store: Store
}

async function assemble(
  { config, clock: systemClock, log, live = unknownLiveState }: OpenOptions,
  { startedAt, authority, tokens, auditSealer, store }: OpenedFiles,
): Promise<Controller> {
  const clock = new WatchedClock(systemClock)
  await reportStartInPast(store.db, clock)
  const access = new Access(startedAt, live)
  const references = new ReferenceCache()
  const behaviors = new Behaviors()
  const entities = new EntityStore(behaviors)
  const readyRecords = new RecordCache({ behaviors, references })
  const authPolicies = new AuthPolicyCache()
  const extensionRequests = new ExtensionRequests()
  const sessions = new ApiSessions({
    entities,
    tokens,
    clock,
    timeout: config['session.timeout'],
    maxPerIdentity: config['limits.sessionsPerIdentity'],
  })
  clock.onStep((milliseconds) => sessions.followClock(milliseconds))
  // Rights and sessions first: whatever else follows a commit, no request is served by rights that are gone.
  await store.projections.start(access, sessions, authPolicies, extensionRequests, references, readyRecords)
  const clientTrust = new ClientTrustStore(authority)
  const passwordHasher = new PasswordHasher(config['limits.passwordQueue'])
  const passwords = new Passwords({ entities, hasher: passwordHasher, authPolicies, sessions })
  const enrollments = new EnrollmentIssuer(entities, config, authority)
  const configSchemas = new ConfigSchemas()
  const membership = await ControllerMembership.load(store.db, entities, config, authority)
  const { network } = live
  const routers = new Routers(entities, config)
  const usableRouters = new UsableRouters(access, network)
  registerBehaviors(behaviors, {
    access,
    authPolicies,
    clientTrust,
    configSchemas,
    enrollments,
    extensionRequests,
    membership,
    network,
    passwords,
    references,
    routers,
    sessions,
    usableRouters,
  })
  // In this order: whether the caller may at all comes first, and sessions end for what is certain to commit.
  const contexts = new Contexts(store, clock, [
    { before: (caller, earlier) => requireSameRights({ sessions, authPolicies }, caller, earlier) },
    { after: (tx, _earlier, own) => requireUsableAdministrator(tx, own) },
    { after: (tx, earlier, own) => revokeSessions(access, tx, earlier, own) },
  ])
  const controller: Controller = {
    config,
    clock,
    log,
    store,
    auditSealer,
    authority,
    access,
    sessions,
    authPolicies,
    clientTrust,
    refusals: new FailedLoginLimiter(),
    signIns: new SignInRecorder(config['limits.signInsPerIdentity']),
    writeLimits: new WriteLimits(config['limits.writesPerIdentity'], config['limits.ownChangesPerIdentity']),
    references,
    readyRecords,
    passwordHasher,
    passwords,
    enrollments,
    configSchemas,
    membership,
    network,
    routers,
    usableRouters,
    traces: new Traces(),
    behaviors,
    startedAt,
    entities,
    contexts,
    async close() {
      const system = contexts.create({ kind: 'system' })
      const resources = new OpenResources()
      resources.add(() => store.close())
      for (const counter of [controller.signIns, controller.refusals]) {
        resources.add(() => counter.flush(contexts, { isFinal: true }))
      }
      resources.add(() => sessions.flush(system))
      const [failure] = await resources.close()
      if (failure !== undefined) throw failure
    },
  }
  return controller
}
