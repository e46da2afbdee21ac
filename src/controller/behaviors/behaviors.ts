// Registers the behavior of each resource, when the controller is composed.
import type { Access } from '../../access/access.ts'
import type { LiveNetwork, RouterLoad } from '../../access/live-network.ts'
import { ServiceBehavior } from '../../access/services/service-behavior.ts'
import type { SessionTokens } from '../../access/sessions/session-tokens.ts'
import { ApiSessionBehavior } from '../../authentication/api-sessions/api-session-behavior.ts'
import type { Auth } from '../../authentication/auth.ts'
import { AuthPolicyBehavior } from '../../authentication/auth-policy-behavior.ts'
import { CertificateAuthorityBehavior } from '../../authentication/authorities/ca-behavior.ts'
import { AuthenticatorBehavior } from '../../authentication/credentials/authenticator-behavior.ts'
import { EnrollmentBehavior } from '../../authentication/enrollment/enrollment-behavior.ts'
import type { EnrollmentIssuer } from '../../authentication/enrollment/enrollments.ts'
import { MfaEnrollmentBehavior } from '../../authentication/mfa/mfa-enrollment-behavior.ts'
import { SignerBehavior } from '../../authentication/signers/signer-behavior.ts'
import { apiSessions as apiSessionRecords } from '../../definitions/resources/api-sessions.ts'
import { authPolicies } from '../../definitions/resources/auth-policies.ts'
import { authenticators } from '../../definitions/resources/authenticators.ts'
import { cas } from '../../definitions/resources/cas.ts'
import { certificates } from '../../definitions/resources/certificates.ts'
import { configTypes } from '../../definitions/resources/config-types.ts'
import { configs } from '../../definitions/resources/configs.ts'
import { controllerSettings } from '../../definitions/resources/controller-settings.ts'
import { controllers } from '../../definitions/resources/controllers.ts'
import { edgeRouters } from '../../definitions/resources/edge-routers.ts'
import { enrollments as enrollmentRecords } from '../../definitions/resources/enrollments.ts'
import { externalJwtSigners } from '../../definitions/resources/external-jwt-signers.ts'
import { identities } from '../../definitions/resources/identities.ts'
import { resources } from '../../definitions/resources/index.ts'
import { mfaEnrollments } from '../../definitions/resources/mfa-enrollments.ts'
import { routers as allRouters } from '../../definitions/resources/routers.ts'
import { serviceConfigs } from '../../definitions/resources/service-configs.ts'
import { services } from '../../definitions/resources/services.ts'
import { sessions } from '../../definitions/resources/sessions.ts'
import { terminators } from '../../definitions/resources/terminators.ts'
import { webhooks } from '../../definitions/resources/webhooks.ts'
import { ConfigSchemas } from '../../definitions/schema/config-schemas.ts'
import type { CertificateBehavior } from '../../maintenance/certificates/certificate-behavior.ts'
import type { WebhookBehavior } from '../../maintenance/webhooks/webhook-behavior.ts'
import { ControllerBehavior } from '../../network/controllers/controller-behavior.ts'
import type { ControllerMembership } from '../../network/controllers/membership.ts'
import { ControllerSettingBehavior } from '../../network/controllers/setting-behavior.ts'
import type { OidcAnnouncement } from '../../network/routers/oidc-announcement.ts'
import { EdgeRouterBehavior, RouterBehavior } from '../../network/routers/router-behavior.ts'
import type { RouterProvisioner } from '../../network/routers/router-provisioner.ts'
import type { UsableRouters } from '../../network/routers/usable-routers.ts'
import { TerminatorBehavior } from '../../network/terminators/terminator-behavior.ts'
import type { Behaviors } from '../../storage/behavior.ts'
import { ConfigBehavior } from './config-behavior.ts'
import { ConfigTypeBehavior } from './config-type-behavior.ts'
import { IdentityBehavior } from './identity-behavior.ts'
import { ServiceConfigBehavior } from './service-config-behavior.ts'
import { SessionBehavior } from './session-behavior.ts'

/** The collaborators of behaviors. */
export interface BehaviorParts {
  readonly access: Access
  readonly auth: Pick<
    Auth,
    | 'apiSessions'
    | 'clientTrust'
    | 'extensionRequests'
    | 'mfaSecrets'
    | 'passwords'
    | 'policies'
    | 'signers'
    | 'verifiedMfa'
  >
  readonly certificateBehavior: CertificateBehavior
  readonly enrollments: EnrollmentIssuer
  readonly membership: ControllerMembership
  readonly routers: {
    readonly network: LiveNetwork
    readonly provisioner: RouterProvisioner
    readonly usable: UsableRouters
    readonly load: RouterLoad
    readonly oidc: OidcAnnouncement
  }
  readonly sessionTokens: SessionTokens
  readonly webhookBehavior: WebhookBehavior
}

/** @throws Error if a resource declares what no behavior provides */
export function registerBehaviors(behaviors: Behaviors, parts: BehaviorParts): void {
  const { access, auth, certificateBehavior, enrollments, membership, routers, sessionTokens, webhookBehavior } = parts
  const { apiSessions, clientTrust, extensionRequests, mfaSecrets, passwords, policies, signers, verifiedMfa } = auth
  const { load, network, oidc, provisioner, usable: usableRouters } = routers
  const { scopes } = access
  const schemas = new ConfigSchemas()
  behaviors.register(
    apiSessionRecords,
    new ApiSessionBehavior(apiSessions, policies, signers.directory, extensionRequests),
  )
  behaviors.register(authenticators, new AuthenticatorBehavior({ apiSessions, passwords, clientTrust }))
  behaviors.register(mfaEnrollments, new MfaEnrollmentBehavior(mfaSecrets))
  behaviors.register(authPolicies, new AuthPolicyBehavior())
  behaviors.register(cas, new CertificateAuthorityBehavior({ clientTrust }))
  behaviors.register(certificates, certificateBehavior)
  behaviors.register(configTypes, new ConfigTypeBehavior(schemas))
  behaviors.register(configs, new ConfigBehavior(schemas))
  behaviors.register(controllers, new ControllerBehavior(membership, oidc))
  behaviors.register(controllerSettings, new ControllerSettingBehavior())
  behaviors.register(edgeRouters, new EdgeRouterBehavior({ provisioner, enrollments, network, scopes }))
  behaviors.register(enrollmentRecords, new EnrollmentBehavior(enrollments))
  behaviors.register(externalJwtSigners, new SignerBehavior(signers))
  behaviors.register(identities, new IdentityBehavior({ apiSessions, enrollments, network, scopes, verifiedMfa }))
  behaviors.register(allRouters, new RouterBehavior({ provisioner, enrollments, network, load, oidc }))
  behaviors.register(serviceConfigs, new ServiceConfigBehavior())
  behaviors.register(services, new ServiceBehavior({ access, apiSessions }))
  behaviors.register(sessions, new SessionBehavior({ access, apiSessions, sessionTokens, usableRouters }))
  behaviors.register(terminators, new TerminatorBehavior(network))
  behaviors.register(webhooks, webhookBehavior)
  behaviors.assertComplete(resources)
}
