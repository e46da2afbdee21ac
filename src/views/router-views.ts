// The members of router records that are not in their rows: how to enroll, and what is known while they are connected.
import { toIsoTime } from '../clock.ts'
import type { ReadContext } from '../context.ts'
import type { ComputedFields, ComputedInput, Derive } from '../resources/define.ts'
import type { LiveRouter } from '../routers/live-network.ts'
import { isOneOf } from '../store/untyped.ts'

/** What clients are told of the software of a router that is not connected. */
const NO_VERSION = { arch: '', buildDate: '', os: '', revision: '', version: '' } as const

/** The outstanding enrollment of each router that has not enrolled. */
export const deriveRouters: Derive = async ({ db, controller }, rows) => {
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
        enrollmentJwt: await controller.enrollments.signJwt(enrollment),
        enrollmentCreatedAt: toIsoTime(enrollment.createdAt),
        enrollmentExpiresAt: toIsoTime(enrollment.expiresAt),
      }
    }),
  )
}

export class RouterFields implements ComputedFields {
  async computeFields(
    { controller }: ReadContext,
    routers: readonly ComputedInput[],
  ): Promise<Record<string, unknown>[]> {
    return routers.map(({ id }) => {
      const live = controller.network.router(id)
      return { isOnline: live !== undefined, interfaces: live?.interfaces ?? null }
    })
  }
}

export class EdgeRouterFields implements ComputedFields {
  async computeFields(
    { controller }: ReadContext,
    routers: readonly ComputedInput[],
  ): Promise<Record<string, unknown>[]> {
    return routers.map(({ id }) => {
      const live = controller.network.router(id)
      return {
        ...toClientRouterFields(live),
        versionInfo: live?.versionInfo ?? NO_VERSION,
        interfaces: live?.interfaces ?? null,
      }
    })
  }
}

/** What clients are told of a router's connection. */
export function toClientRouterFields(live: LiveRouter | undefined) {
  return {
    isOnline: live !== undefined,
    hostname: live?.hostname ?? '',
    supportedProtocols: live?.supportedProtocols ?? {},
    syncStatus: live?.syncStatus ?? 'SYNC_UNKNOWN',
  }
}
