// The registry: every resource there is. What loops over resources loops over this.
import { apiSessions } from './api-sessions.ts'
import { authPolicies } from './auth-policies.ts'
import { authenticators } from './authenticators.ts'
import { configTypes } from './config-types.ts'
import { configs } from './configs.ts'
import type { AnyResource } from './define.ts'
import { enrollments } from './enrollments.ts'
import { identities } from './identities.ts'
import { identityTypes } from './identity-types.ts'
import { postureChecks } from './posture-checks.ts'
import { servicePolicies } from './service-policies.ts'
import { services } from './services.ts'

export const resources = [
  configTypes,
  configs,
  services,
  authPolicies,
  identityTypes,
  identities,
  authenticators,
  enrollments,
  apiSessions,
  postureChecks,
  servicePolicies,
] as const

const byPlural = new Map<string, AnyResource>(resources.map((resource) => [resource.plural, resource]))

/** The resource of that plural name; a name that is none is a mistake in a definition. */
export function resourceOf(plural: string): AnyResource {
  const resource = byPlural.get(plural)
  if (!resource) throw new Error(`no resource is called ${plural}`)
  return resource
}
