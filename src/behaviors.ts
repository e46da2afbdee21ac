// Which behavior each resource has: the one list of them, read once when the controller is put together.
import type { Access } from './access/access.ts'
import { ApiSessionBehavior } from './auth/api-session-behavior.ts'
import type { ApiSessions } from './auth/api-sessions.ts'
import type { AuthPolicyCache } from './auth/auth-policies.ts'
import { AuthPolicyBehavior } from './auth/auth-policy-behavior.ts'
import { AuthenticatorBehavior } from './auth/authenticator-behavior.ts'
import type { ClientTrustStore } from './auth/client-trust.ts'
import type { ExtensionRequests } from './auth/extension-requests.ts'
import type { Passwords } from './auth/passwords.ts'
import type { Behaviors } from './behavior.ts'
import { ConfigBehavior } from './configs/config-behavior.ts'
import { ConfigTypeBehavior } from './configs/config-type-behavior.ts'
import { ControllerBehavior } from './controllers/controller-behavior.ts'
import type { ControllerMembership } from './controllers/membership.ts'
import { ControllerSettingBehavior } from './controllers/setting-behavior.ts'
import { EnrollmentBehavior } from './enrollment/enrollment-behavior.ts'
import type { EnrollmentIssuer } from './enrollment/enrollments.ts'
import { IdentityBehavior } from './identities/identity-behavior.ts'
import type { ReferenceCache } from './records/reference-cache.ts'
import { apiSessions } from './resources/api-sessions.ts'
import { authPolicies as authPolicyRecords } from './resources/auth-policies.ts'
import { authenticators } from './resources/authenticators.ts'
import { configTypes } from './resources/config-types.ts'
import { configs } from './resources/configs.ts'
import { controllerSettings } from './resources/controller-settings.ts'
import { controllers } from './resources/controllers.ts'
import { edgeRouters } from './resources/edge-routers.ts'
import { enrollments as enrollmentRecords } from './resources/enrollments.ts'
import { identities } from './resources/identities.ts'
import { resources } from './resources/index.ts'
import { routers as allRouters } from './resources/routers.ts'
import { services } from './resources/services.ts'
import { sessions as serviceSessions } from './resources/sessions.ts'
import { terminators } from './resources/terminators.ts'
import type { LiveNetwork } from './routers/live-network.ts'
import { EdgeRouterBehavior, RouterBehavior } from './routers/router-behavior.ts'
import type { Routers } from './routers/routers.ts'
import { TerminatorBehavior } from './routers/terminator-behavior.ts'
import type { UsableRouters } from './routers/usable-routers.ts'
import type { ConfigSchemas } from './schema/config-schemas.ts'
import { ServiceBehavior } from './services/service-behavior.ts'
import { SessionBehavior } from './sessions/session-behavior.ts'

/** What behaviors work with. */
export interface BehaviorCollaborators {
  readonly access: Access
  readonly authPolicies: AuthPolicyCache
  readonly clientTrust: ClientTrustStore
  readonly configSchemas: ConfigSchemas
  readonly enrollments: EnrollmentIssuer
  readonly extensionRequests: ExtensionRequests
  readonly membership: ControllerMembership
  readonly network: LiveNetwork
  readonly passwords: Passwords
  readonly references: ReferenceCache
  readonly routers: Routers
  readonly sessions: ApiSessions
  readonly usableRouters: UsableRouters
}

/** @throws Error if a resource declares what no behavior provides */
export function registerBehaviors(behaviors: Behaviors, parts: BehaviorCollaborators): void {
  const { access, authPolicies, clientTrust, configSchemas, enrollments, extensionRequests } = parts
  const { membership, network, passwords, references, routers, sessions, usableRouters } = parts
  const { scopes } = access
  behaviors.register(apiSessions, new ApiSessionBehavior(sessions, authPolicies, extensionRequests))
  behaviors.register(authenticators, new AuthenticatorBehavior({ sessions, passwords, clientTrust }))
  behaviors.register(authPolicyRecords, new AuthPolicyBehavior())
  behaviors.register(configTypes, new ConfigTypeBehavior(configSchemas))
  behaviors.register(configs, new ConfigBehavior(configSchemas))
  behaviors.register(controllers, new ControllerBehavior(membership))
  behaviors.register(controllerSettings, new ControllerSettingBehavior())
  behaviors.register(edgeRouters, new EdgeRouterBehavior({ routers, enrollments, network, scopes }))
  behaviors.register(enrollmentRecords, new EnrollmentBehavior(enrollments))
  behaviors.register(identities, new IdentityBehavior({ sessions, enrollments, routers, network, scopes }))
  behaviors.register(allRouters, new RouterBehavior({ routers, enrollments, network }))
  behaviors.register(services, new ServiceBehavior({ access, sessions }))
  behaviors.register(serviceSessions, new SessionBehavior({ access, sessions, references, usableRouters }))
  behaviors.register(terminators, new TerminatorBehavior(network))
  behaviors.assertComplete(resources)
}
