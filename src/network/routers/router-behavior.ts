// Routers: what is made and deleted with them, how one that has not enrolled does so, and what is known while one is connected.
import type { Kysely } from 'kysely'
import type { LiveNetwork, LiveRouter, ModelProgress, RouterLoad } from '../../access/live-network.ts'
import type { PolicyScopes } from '../../access/policy-scopes.ts'
import type { EnrollmentIssuer, RequestedExpiry } from '../../authentication/enrollment/enrollments.ts'
import type { AnyRow, ComputedInput, Entity, Inputs } from '../../definitions/resources/define.ts'
import type { edgeRouters } from '../../definitions/resources/edge-routers.ts'
import type { routers } from '../../definitions/resources/routers.ts'
import { toIsoTime } from '../../foundation/clock.ts'
import type { Behavior, FindRelated } from '../../storage/behavior.ts'
import type { Database } from '../../storage/database.ts'
import type { Context, ReadContext, WriteContext } from '../../storage/transactions/context.ts'
import { isOneOf } from '../../storage/untyped.ts'
import type { OidcAnnouncement } from './oidc-announcement.ts'
import type { RouterProvisioner } from './router-provisioner.ts'

/** The software of a router that is not connected, as clients see it. */
const NO_VERSION = { arch: '', buildDate: '', os: '', revision: '', version: '' } as const

/** The collaborators of the behaviors of routers. */
interface RouterBehaviorParts {
  readonly provisioner: RouterProvisioner
  readonly enrollments: EnrollmentIssuer
  readonly network: LiveNetwork
}

interface AllRouterParts extends RouterBehaviorParts {
  readonly load: RouterLoad
  readonly oidc: OidcAnnouncement
}

export class RouterBehavior implements Behavior<typeof routers, RequestedExpiry | null | undefined> {
  readonly #provisioner: RouterProvisioner
  readonly #enrollments: EnrollmentIssuer
  readonly #network: LiveNetwork
  readonly #load: RouterLoad
  readonly #oidc: OidcAnnouncement

  constructor({ provisioner, enrollments, network, load, oidc }: AllRouterParts) {
    this.#provisioner = provisioner
    this.#enrollments = enrollments
    this.#network = network
    this.#load = load
    this.#oidc = oidc
  }

  async prepareCreate(_context: Context, _draft: unknown, { enrollment }: Inputs<typeof routers>) {
    return enrollment
  }

  async created(tx: WriteContext, router: Entity<typeof routers>, requested: RequestedExpiry | null | undefined) {
    // One that is created with its certificate has nothing to enroll for.
    if (!router.isVerified) await this.#provisioner.enroll(tx, 'trott', router.id, requested)
  }

  deriveFields({ db }: ReadContext, rows: readonly AnyRow[]): Promise<Record<string, unknown>[]> {
    return deriveEnrollmentFields(this.#enrollments, db, rows)
  }

  computeFields({ clock }: ReadContext, records: readonly ComputedInput[]): Record<string, unknown>[] {
    return records.map(({ id }) => {
      const live = this.#network.findRouter(id)
      return {
        dataModel: live ? describeProgress(live.model, clock.monotonic()) : null,
        isOnline: live !== undefined,
        version: live?.versionInfo.version ?? '',
        supportsOidc: this.#oidc.isSupportedBy(id) ?? null,
        linkCount: this.#load.countLinks(id),
        circuitCount: this.#load.countCircuits(id),
        controllers: this.#network.listNodesOf(id),
      }
    })
  }
}

function describeProgress({ mode, index, behindSince }: ModelProgress, now: number): Record<string, unknown> {
  const lagSeconds = behindSince === undefined ? 0 : Math.floor((now - behindSince) / 1_000)
  return { mode, index: index ?? null, lagSeconds: mode === 'none' ? null : lagSeconds }
}

type EdgeRouter = Entity<typeof edgeRouters>

export class EdgeRouterBehavior implements Behavior<typeof edgeRouters, RequestedExpiry | null | undefined> {
  readonly #provisioner: RouterProvisioner
  readonly #enrollments: EnrollmentIssuer
  readonly #network: LiveNetwork
  readonly relations: Readonly<Record<string, FindRelated>>

  constructor({ provisioner, enrollments, network, scopes }: RouterBehaviorParts & { readonly scopes: PolicyScopes }) {
    this.#provisioner = provisioner
    this.#enrollments = enrollments
    this.#network = network
    this.relations = {
      'edge-router-policies': (_context, id) => scopes.findEdgeRouterPoliciesOfRouter(id),
      'service-edge-router-policies': (_context, id) => scopes.findServiceEdgeRouterPoliciesOfRouter(id),
      identities: (_context, id) => scopes.findIdentitiesOfRouter(id),
      services: (_context, id) => scopes.findServicesOfRouter(id),
    }
  }

  async prepareCreate(_context: Context, _draft: unknown, { enrollment }: Inputs<typeof edgeRouters>) {
    return enrollment
  }

  async created(tx: WriteContext, router: EdgeRouter, requested: RequestedExpiry | null | undefined): Promise<void> {
    await this.#provisioner.enroll(tx, 'erott', router.id, requested)
    await this.#provisioner.followTunneler(tx, router, undefined)
  }

  updated(tx: WriteContext, router: EdgeRouter, previous: EdgeRouter): Promise<void> {
    return this.#provisioner.followTunneler(tx, router, previous)
  }

  deleted(tx: WriteContext, router: EdgeRouter): Promise<void> {
    return this.#provisioner.followTunneler(tx, undefined, router)
  }

  deriveFields({ db }: ReadContext, rows: readonly AnyRow[]): Promise<Record<string, unknown>[]> {
    return deriveEnrollmentFields(this.#enrollments, db, rows)
  }

  computeFields(_context: ReadContext, records: readonly ComputedInput[]): Record<string, unknown>[] {
    return records.map(({ id }) => toClientRouterFields(this.#network.findRouter(id)))
  }
}

/** The outstanding enrollment of each router that has not enrolled. */
async function deriveEnrollmentFields(
  issuer: EnrollmentIssuer,
  db: Kysely<Database>,
  rows: readonly AnyRow[],
): Promise<Record<string, unknown>[]> {
  const waiting = rows.filter(({ isVerified }) => isVerified === 0).map(({ id }) => id)
  const enrollments =
    waiting.length === 0
      ? []
      : await db
          .selectFrom('enrollments')
          .select(['edgeRouterId', 'transitRouterId', 'method', 'token', 'expiresAt', 'createdAt'])
          .where((eb) => eb.or([isOneOf(db, 'edgeRouterId', waiting), isOneOf(db, 'transitRouterId', waiting)]))
          .execute()
  const byRouter = new Map(enrollments.map((row) => [row.edgeRouterId ?? row.transitRouterId, row]))
  return Promise.all(
    rows.map(async ({ id }) => {
      const enrollment = byRouter.get(id)
      if (!enrollment) return {}
      return {
        enrollmentToken: enrollment.token,
        enrollmentJwt: await issuer.signJwt(enrollment),
        enrollmentCreatedAt: toIsoTime(enrollment.createdAt),
        enrollmentExpiresAt: toIsoTime(enrollment.expiresAt),
      }
    }),
  )
}

/** A router's connection, as clients see it; one object for all routers that are not connected. */
export function toClientRouterFields(live: LiveRouter | undefined) {
  if (!live) return OFFLINE_FIELDS
  const { hostname, supportedProtocols, syncStatus, versionInfo } = live
  return { isOnline: true, hostname, supportedProtocols, syncStatus, versionInfo }
}

const OFFLINE_FIELDS = {
  isOnline: false,
  hostname: '',
  supportedProtocols: {},
  syncStatus: 'SYNC_UNKNOWN',
  versionInfo: NO_VERSION,
} as const
