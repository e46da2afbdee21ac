// The registry: all resources, for everything that loops over them.
import { apiSessions } from './api-sessions.ts'
import { authPolicies } from './auth-policies.ts'
import { authenticators } from './authenticators.ts'
import { cas } from './cas.ts'
import { certificates } from './certificates.ts'
import { configTypes } from './config-types.ts'
import { configs } from './configs.ts'
import { controllerSettings } from './controller-settings.ts'
import { controllers } from './controllers.ts'
import type { AnyResource } from './define.ts'
import { edgeRouterPolicies } from './edge-router-policies.ts'
import { edgeRouters } from './edge-routers.ts'
import { enrollments } from './enrollments.ts'
import { externalJwtSigners } from './external-jwt-signers.ts'
import { identities } from './identities.ts'
import { identityTypes } from './identity-types.ts'
import { linkSettings } from './link-settings.ts'
import { mfaEnrollments } from './mfa-enrollments.ts'
import { postureCheckTypes } from './posture-check-types.ts'
import { postureChecks } from './posture-checks.ts'
import { routers } from './routers.ts'
import { serviceConfigs } from './service-configs.ts'
import { serviceEdgeRouterPolicies } from './service-edge-router-policies.ts'
import { servicePolicies } from './service-policies.ts'
import { services } from './services.ts'
import { sessionCertificates } from './session-certificates.ts'
import { sessions } from './sessions.ts'
import { sharedFiles } from './shared-files.ts'
import { terminators } from './terminators.ts'
import { ticketKeys } from './ticket-keys.ts'
import { tokenKeys } from './token-keys.ts'
import { tokens } from './tokens.ts'
import { webhooks } from './webhooks.ts'

export const resources = [
  configTypes,
  configs,
  services,
  routers,
  edgeRouters,
  terminators,
  linkSettings,
  externalJwtSigners,
  authPolicies,
  identityTypes,
  cas,
  identities,
  serviceConfigs,
  authenticators,
  enrollments,
  tokens,
  apiSessions,
  mfaEnrollments,
  sessionCertificates,
  certificates,
  sessions,
  postureCheckTypes,
  postureChecks,
  servicePolicies,
  edgeRouterPolicies,
  serviceEdgeRouterPolicies,
  controllers,
  controllerSettings,
  tokenKeys,
  ticketKeys,
  sharedFiles,
  webhooks,
] as const

const byPlural = new Map<string, AnyResource>(resources.map((resource) => [resource.plural, resource]))

/** The resource of that plural name; a name that is none is a mistake in a definition. */
export function getResource(plural: string): AnyResource {
  const resource = byPlural.get(plural)
  if (!resource) throw new Error(`no resource is called ${plural}`)
  return resource
}
