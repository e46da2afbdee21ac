// Checks sign-in by OpenID Connect: routers that keep it from being announced, and clients to which routers then refuse services.
import type { Access } from '../../access/access.ts'
import { findUnreportedClients, LEGACY_SIGN_IN_HINT } from '../../access/advice/router-posture.ts'
import type { VersionInfo } from '../../definitions/resources/routers.ts'
import { quoteShellWord } from '../../foundation/shell-words.ts'
import type { OidcAnnouncement } from '../../network/routers/oidc-announcement.ts'
import { isOneOf } from '../../storage/untyped.ts'
import type { Network } from './check-network.ts'
import { type Diagnosis, MAX_DIAGNOSES_PER_CHECK } from './diagnosis.ts'

/** The state of the announcement of OpenID Connect if the check passes. */
export function describeOidc({ mode, isActive, hasSupporting }: OidcAnnouncement): string {
  if (mode === 'never') return 'sign-in by OpenID Connect is not announced, by the setting oidc.announce'
  if (isActive || hasSupporting) return 'sign-in by OpenID Connect is announced, and every router supports it'
  return 'sign-in by OpenID Connect is not announced, because no router is of release 2.0 or later'
}

/** Routers of releases before 2.0, if others are newer, or if clients come that cannot use them. */
export async function checkOidc({ context }: Network, oidc: OidcAnnouncement): Promise<Diagnosis[]> {
  if (oidc.mode === 'never' || (oidc.mode === 'auto' && !oidc.hasSupporting)) return []
  const rows = await context.db
    .selectFrom('routers')
    .select(['name', 'isEdge', 'lastVersion'])
    .where(isOneOf(context.db, 'id', oidc.listUnsupporting()))
    .orderBy('name')
    .limit(MAX_DIAGNOSES_PER_CHECK)
    .execute()
  const effect = oidc.isActive
    ? 'clients that sign in by OpenID Connect cannot use it'
    : 'as long as it has enrolled, sign-in by OpenID Connect is not announced to clients'
  return rows.map(({ name, isEdge, lastVersion }) => {
    const command = isEdge === 1 ? 'edge-router' : 'router'
    const version = lastVersion === null ? undefined : (JSON.parse(lastVersion) as VersionInfo).version
    const release = version === undefined ? 'it has never connected' : `it last connected with release ${version}`
    return {
      check: 'oidc',
      subject: `${command} ${name}`,
      message: `${release}: ${effect}`,
      remedy: `update it to release 2.0 or later, or: controller ${command} delete ${quoteShellWord(name)}`,
    }
  })
}

/** Clients to which routers refuse services with posture checks, because they report their posture to the controller alone. */
export async function checkRouterPosture({ context, index }: Network, access: Access): Promise<Diagnosis[]> {
  if (!index.hasPostureChecks) return []
  const clients = await findUnreportedClients(context, MAX_DIAGNOSES_PER_CHECK)
  return clients.flatMap(({ id, name, roleAttributes }): Diagnosis[] => {
    const policies = access.findPolicies({ id, attributes: JSON.parse(roleAttributes) as string[] })
    if (!policies.some((policy) => index.listRequiredPostureChecks(policy).length > 0)) return []
    const message =
      'routers of release 2 refuse it services with posture checks: it signed in by OpenID Connect, and the C SDK reports nothing to them'
    return [{ check: 'guarded services', subject: `identity ${name}`, message, remedy: LEGACY_SIGN_IN_HINT }]
  })
}
