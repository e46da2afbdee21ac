// Registers the behavior of each resource, when the controller is composed.
import type { Access } from './access/access.ts'
import { ApiSessionBehavior } from './auth/api-session-behavior.ts'
import type { Auth } from './auth/auth.ts'
import { AuthPolicyBehavior } from './auth/auth-policy-behavior.ts'
import { AuthenticatorBehavior } from './auth/authenticator-behavior.ts'
import { CertificateAuthorityBehavior } from './auth/authorities/ca-behavior.ts'
import { MfaEnrollmentBehavior } from './auth/mfa/mfa-enrollment-behavior.ts'
import { SignerBehavior } from './auth/signer-behavior.ts'
import type { Behaviors } from './behavior.ts'
import type { CertificateBehavior } from './certificates/certificate-behavior.ts'
import { ConfigBehavior } from './configs/config-behavior.ts'
import { ConfigTypeBehavior } from './configs/config-type-behavior.ts'
import { ServiceConfigBehavior } from './configs/service-config-behavior.ts'
import { ControllerBehavior } from './controllers/controller-behavior.ts'
import type { ControllerMembership } from './controllers/membership.ts'
import { ControllerSettingBehavior } from './controllers/setting-behavior.ts'
import { EnrollmentBehavior } from './enrollment/enrollment-behavior.ts'
import type { EnrollmentIssuer } from './enrollment/enrollments.ts'
import { IdentityBehavior } from './identities/identity-behavior.ts'
import type { ReferenceCache } from './records/reference-cache.ts'
import { apiSessions as apiSessionRecords } from './resources/api-sessions.ts'
import { authPolicies } from './resources/auth-policies.ts'
import { authenticators } from './resources/authenticators.ts'
import { cas } from './resources/cas.ts'
import { certificates } from './resources/certificates.ts'
import { configTypes } from './resources/config-types.ts'
import { configs } from './resources/configs.ts'
import { controllerSettings } from './resources/controller-settings.ts'
import { controllers } from './resources/controllers.ts'
import { edgeRouters } from './resources/edge-routers.ts'
import { enrollments as enrollmentRecords } from './resources/enrollments.ts'
import { externalJwtSigners } from './resources/external-jwt-signers.ts'
import { identities } from './resources/identities.ts'
import { resources } from './resources/index.ts'
import { mfaEnrollments } from './resources/mfa-enrollments.ts'
import { routers as allRouters } from './resources/routers.ts'
import { serviceConfigs } from './resources/service-configs.ts'
import { services } from './resources/services.ts'
import { sessions } from './resources/sessions.ts'
import { terminators } from './resources/terminators.ts'
import type { LiveNetwork, RouterLoad } from './routers/live-network.ts'
import { EdgeRouterBehavior, RouterBehavior } from './routers/router-behavior.ts'
import type { RouterProvisioner } from './routers/router-provisioner.ts'
import { TerminatorBehavior } from './routers/terminator-behavior.ts'
import type { UsableRouters } from './routers/usable-routers.ts'
import { ConfigSchemas } from './schema/config-schemas.ts'
import { ServiceBehavior } from './services/service-behavior.ts'
import { SessionBehavior } from './sessions/session-behavior.ts'

/** What behaviors work with. */
export interface BehaviorCollaborators {
  readonly access: Access
  readonly auth: Pick<
    Auth,
    'apiSessions' | 'clientTrust' | 'extensionRequests' | 'mfaSecrets' | 'passwords' | 'policies' | 'signers'
  >
  readonly certificateBehavior: CertificateBehavior
  readonly enrollments: EnrollmentIssuer
  readonly membership: ControllerMembership
  readonly references: ReferenceCache
  readonly routers: {
    readonly network: LiveNetwork
    readonly provisioner: RouterProvisioner
    readonly usable: UsableRouters
    readonly load: RouterLoad
  }
}

/** @throws Error if a resource declares what no behavior provides */
export function registerBehaviors(behaviors: Behaviors, parts: BehaviorCollaborators): void {
  const { access, auth, certificateBehavior, enrollments, membership, references, routers } = parts
  const { apiSessions, clientTrust, extensionRequests, mfaSecrets, passwords, policies, signers } = auth
  const { load, network, provisioner, usable: usableRouters } = routers
  const { scopes } = access
  const schemas = new ConfigSchemas()
  behaviors.register(
    apiSessionRecords,
    new ApiSessionBehavior(apiSessions, policies, signers.directory, extensionRequests),
  )
  behaviors.register(authenticators, new AuthenticatorBehavior({ apiSessions, passwords, clientTrust }))
  behaviors.register(mfaEnrollments, new MfaEnrollmentBehavior(mfaSecrets))
  behaviors.register(authPolicies, new AuthPolicyBehavior())
  behaviors.register(cas, new CertificateAuthorityBehavior({ apiSessions, clientTrust }))
  behaviors.register(certificates, certificateBehavior)
  behaviors.register(configTypes, new ConfigTypeBehavior(schemas))
  behaviors.register(configs, new ConfigBehavior(schemas))
  behaviors.register(controllers, new ControllerBehavior(membership))
  behaviors.register(controllerSettings, new ControllerSettingBehavior())
  behaviors.register(edgeRouters, new EdgeRouterBehavior({ provisioner, enrollments, network, scopes }))
  behaviors.register(enrollmentRecords, new EnrollmentBehavior(enrollments))
  behaviors.register(externalJwtSigners, new SignerBehavior({ ...signers, apiSessions }))
  behaviors.register(
    identities,
    new IdentityBehavior({ apiSessions, enrollments, provisioner, network, references, scopes }),
  )
  behaviors.register(allRouters, new RouterBehavior({ provisioner, enrollments, network, load }))
  behaviors.register(serviceConfigs, new ServiceConfigBehavior())
  behaviors.register(services, new ServiceBehavior({ access, apiSessions }))
  behaviors.register(sessions, new SessionBehavior({ access, apiSessions, references, usableRouters }))
  behaviors.register(terminators, new TerminatorBehavior(network))
  behaviors.assertComplete(resources)
}
