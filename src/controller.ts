// The controller without any face: everything that a request, an offline command or a background job works with.
import { Access } from './access/access.ts'
import { type LiveState, unknownLiveState } from './access/live-state.ts'
import { revokeSessions } from './access/session-revocation.ts'
import { requireUsableAdministrator } from './auth/administrators.ts'
import { ApiSessions } from './auth/api-sessions.ts'
import { AuthPolicyCache } from './auth/auth-policies.ts'
import { requireSameRights, toActor } from './auth/callers.ts'
import { ClientTrustStore } from './auth/client-trust.ts'
import { ExtensionRequests } from './auth/extension-requests.ts'
import { FailedLoginLimiter } from './auth/failed-sign-ins.ts'
import { PasswordHasher } from './auth/password-hasher.ts'
import { Passwords } from './auth/passwords.ts'
import { SessionTokens } from './auth/session-tokens.ts'
import { SignInRecorder } from './auth/sign-in-recorder.ts'
import { WriteLimits } from './auth/write-limits.ts'
import type { Behaviors } from './behavior.ts'
import { registerBehaviors } from './behaviors.ts'
import type { Clock } from './clock.ts'
import { reportStartInPast } from './clock-jumps.ts'
import { type Config, listCertificateHosts } from './config.ts'
import type { Caller, Context, Origin, WriteContext } from './context.ts'
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
import type { AuditEvent, Change } from './store/changes.ts'
import { openSqliteStore } from './store/dialects/sqlite/store.ts'
import type { ProjectionError } from './store/projection.ts'
import type { AuditOrigin, Store } from './store/store.ts'
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
  /** What code works with on behalf of a caller. */
  context(caller: Caller, origin?: Origin): Context
  /** Writes an audit record of what a caller did before. Its rights are not asked again, because nothing is done now. */
  recordEvent(caller: Caller, origin: Origin, event: AuditEvent): Promise<void>
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

const BACKGROUND: Origin = { requestId: 'background', address: undefined }

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
  const readyRecords = new RecordCache()
  const authPolicies = new AuthPolicyCache()
  const extensionRequests = new ExtensionRequests()
  const sessions = new ApiSessions(tokens, config['session.timeout'], clock)
  clock.onStep((milliseconds) => sessions.followClock(milliseconds))
  // Rights and sessions first: whatever else follows a commit, no request is served by rights that are gone.
  await store.projections.start(access, sessions, authPolicies, extensionRequests, references, readyRecords)
  const clientTrust = new ClientTrustStore(authority)
  const passwordHasher = new PasswordHasher(config['limits.passwordQueue'])
  const passwords = new Passwords({ hasher: passwordHasher, authPolicies, sessions })
  const enrollments = new EnrollmentIssuer(config, authority)
  const configSchemas = new ConfigSchemas()
  const membership = await ControllerMembership.load(store.db, config, authority)
  const { network } = live
  const routers = new Routers(config)
  const usableRouters = new UsableRouters(access, network)
  const behaviors = registerBehaviors({
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
    context: (caller, origin = BACKGROUND) => new ControllerContext(controller, caller, origin),
    recordEvent: (caller, origin, event) =>
      controller
        .context(toActor(caller), origin)
        .write(async (tx) => tx.record({ ...event, audit: 'event', at: tx.clock.now(), isAuditOnly: true })),
    async close() {
      const system = controller.context({ kind: 'system' })
      const resources = new OpenResources()
      resources.add(() => store.close())
      for (const counter of [controller.signIns, controller.refusals]) {
        resources.add(() => counter.flush(system, { isFinal: true }))
      }
      resources.add(() => sessions.flush(system))
      const [failure] = await resources.close()
      if (failure !== undefined) throw failure
    },
  }
  return controller
}

class ControllerContext implements Context {
  readonly controller: Controller
  readonly caller: Caller
  readonly origin: Origin

  constructor(controller: Controller, caller: Caller, origin: Origin) {
    this.controller = controller
    this.caller = caller
    this.origin = origin
  }

  get db() {
    return this.controller.store.db
  }

  get clock() {
    return this.controller.clock
  }

  write: Context['write'] = (body) => {
    const { controller, clock, caller, origin } = this
    return controller.store.write(
      async ({ db, groupChanges, record }) => {
        const changes: Change[] = []
        const note = (change: Change) => {
          changes.push(change)
          record(change)
        }
        requireSameRights(controller, caller, groupChanges)
        const tx: WriteContext = { controller, clock, caller, origin, db, record: note }
        const result = await body(tx)
        await requireUsableAdministrator(tx, changes)
        await revokeSessions(tx, groupChanges, [...changes])
        return result
      },
      toAuditOrigin(caller, origin),
    )
  }
}

function toAuditOrigin(caller: Caller, { requestId, address }: Origin): AuditOrigin {
  const isPrivileged = caller.kind === 'identity' ? caller.isAdmin : caller.kind !== 'anonymous'
  return { actor: toAuditActor(caller), requestId, address: address ?? null, isPrivileged }
}

function toAuditActor(caller: Caller): AuditOrigin['actor'] {
  switch (caller.kind) {
    case 'identity':
      return { kind: 'identity', id: caller.identityId, name: caller.identityName }
    case 'local-operator':
      return { kind: 'local', id: null, name: caller.osUser }
    default:
      return { kind: caller.kind, id: null, name: null }
  }
}
