// The registry: every operation of all APIs. What loops over operations loops over this.
import { apiSessions } from '../../src/definitions/resources/api-sessions.ts'
import { authenticators } from '../../src/definitions/resources/authenticators.ts'
import { cas } from '../../src/definitions/resources/cas.ts'
import { controllerSettings } from '../../src/definitions/resources/controller-settings.ts'
import { controllers } from '../../src/definitions/resources/controllers.ts'
import { edgeRouters } from '../../src/definitions/resources/edge-routers.ts'
import { identities } from '../../src/definitions/resources/identities.ts'
import { resources } from '../../src/definitions/resources/index.ts'
import { postureChecks } from '../../src/definitions/resources/posture-checks.ts'
import { routers } from '../../src/definitions/resources/routers.ts'
import { services } from '../../src/definitions/resources/services.ts'
import { sessions } from '../../src/definitions/resources/sessions.ts'
import type { AnyOperation } from '../api/operation.ts'
import { authenticationOperations } from './both-apis/authentication.ts'
import { certificateExtensionOperations } from './both-apis/certificate-extension.ts'
import { controllerOperations } from './both-apis/controllers.ts'
import { currentApiSessionOperations } from './both-apis/current-api-session.ts'
import { currentIdentityOperations } from './both-apis/current-identity.ts'
import { makeInformationalOperations } from './both-apis/informational.ts'
import { mfaOperations } from './both-apis/mfa.ts'
import { networkTrustOperations } from './both-apis/network-trust.ts'
import { ownAuthenticatorOperations } from './both-apis/own-authenticators.ts'
import { sessionOperations } from './both-apis/sessions.ts'
import { enrollOperations } from './client-api/enroll.ts'
import { clientSignerOperations } from './client-api/external-jwt-signers.ts'
import { postureResponseOperations } from './client-api/posture-responses.ts'
import { clientServiceOperations } from './client-api/services.ts'
import { sessionCertificateOperations } from './client-api/session-certificates.ts'
import { fabricOperations } from './fabric-api/operations.ts'
import { apiSessionOperations } from './management-api/api-sessions.ts'
import { auditOperations } from './management-api/audit.ts'
import { authenticatorOperations } from './management-api/authenticators.ts'
import { caOperations } from './management-api/cas.ts'
import { certificateOperations } from './management-api/certificates.ts'
import { ownCircuitOperations } from './management-api/circuits.ts'
import { controllerSettingOperations } from './management-api/controller-settings.ts'
import { databaseOperations } from './management-api/database.ts'
import { doctorOperations } from './management-api/doctor.ts'
import { edgeRouterOperations } from './management-api/edge-routers.ts'
import { enrollmentOperations } from './management-api/enrollments.ts'
import { eventOperations } from './management-api/events.ts'
import { signerOperations } from './management-api/external-jwt-signers.ts'
import { identityOperations } from './management-api/identities.ts'
import { identityPostureOperations } from './management-api/identity-posture.ts'
import { linkOperations } from './management-api/links.ts'
import { logLevelOperations } from './management-api/log-level.ts'
import { metricsOperations } from './management-api/metrics.ts'
import { networkFileOperations } from './management-api/network-file.ts'
import { nodeOperations } from './management-api/nodes.ts'
import { makePermissionQuestions } from './management-api/permission-questions.ts'
import { policyAdviceOperations } from './management-api/policy-advice.ts'
import { policyQuestionOperations } from './management-api/policy-questions.ts'
import { postureQuestionOperations } from './management-api/posture-questions.ts'
import { revocationOperations } from './management-api/revocations.ts'
import { roleAttributeOperations } from './management-api/role-attributes.ts'
import { serviceConfigOperations } from './management-api/service-configs.ts'
import { serviceOverrides } from './management-api/services.ts'
import { summaryOperations } from './management-api/summary.ts'
import { machineTokenOperations } from './management-api/tokens.ts'
import { webhookOperations } from './management-api/webhooks.ts'
import { healthOperations } from './monitoring/health-operations.ts'
import { openIdOperations } from './openid-connect/operations.ts'
import { makeResourceOperations, type OperationOverrides } from './resource-operations.ts'

/** A deletion that would leave no administrator who could sign in. */
const LAST_ADMINISTRATOR: OperationOverrides = { errorStatuses: { delete: [409] } }

/** The operations of resources that differ from those that follow from the definition. */
const overrides: Readonly<Record<string, OperationOverrides>> = {
  [services.plural]: serviceOverrides,
  // The authority of an enrollment that is unknown; the last administrator, and its last credential.
  [identities.plural]: { errorStatuses: { create: [404], delete: [409] } },
  [authenticators.plural]: LAST_ADMINISTRATOR,
  [cas.plural]: LAST_ADMINISTRATOR,
  [edgeRouters.plural]: LAST_ADMINISTRATOR,
  [routers.plural]: LAST_ADMINISTRATOR,
  [postureChecks.plural]: { forbidden: ['delete'] },
  // Listed on both APIs: `both-apis/controllers.ts`.
  [controllers.plural]: { verbs: [] },
  // Changed at a second path too.
  [controllerSettings.plural]: { verbs: ['list', 'create', 'detail'] },
  // Named as clients know them: `management-api/api-sessions.ts`.
  [apiSessions.plural]: { verbs: [] },
  // Of both APIs, and each caller's own: `both-apis/sessions.ts`.
  [sessions.plural]: { verbs: [] },
}

export const operations: readonly AnyOperation[] = [
  // The documents describe all operations, these included; they are loaded on the first request for one.
  ...makeInformationalOperations(async (api) =>
    (await import('../openapi/openapi.ts')).renderOpenApiDocument(api, operations),
  ),
  ...healthOperations,
  ...authenticationOperations,
  ...openIdOperations,
  ...currentApiSessionOperations,
  ...currentIdentityOperations,
  ...ownAuthenticatorOperations,
  ...mfaOperations,
  ...certificateExtensionOperations,
  ...networkTrustOperations,
  ...enrollOperations,
  ...clientServiceOperations,
  ...postureResponseOperations,
  ...sessionCertificateOperations,
  ...clientSignerOperations,
  ...signerOperations,
  ...sessionOperations,
  ...controllerOperations,
  ...caOperations,
  ...controllerSettingOperations,
  ...edgeRouterOperations,
  ...identityOperations,
  ...identityPostureOperations,
  ...logLevelOperations,
  ...metricsOperations,
  ...networkFileOperations,
  ...nodeOperations,
  ...makePermissionQuestions(() => operations),
  ...policyAdviceOperations,
  ...policyQuestionOperations,
  ...postureQuestionOperations,
  ...roleAttributeOperations,
  ...serviceConfigOperations,
  ...summaryOperations,
  ...apiSessionOperations,
  ...revocationOperations,
  ...auditOperations,
  ...authenticatorOperations,
  ...certificateOperations,
  ...ownCircuitOperations,
  ...linkOperations,
  ...databaseOperations,
  ...doctorOperations,
  ...enrollmentOperations,
  ...eventOperations,
  ...machineTokenOperations,
  ...webhookOperations,
  ...fabricOperations,
  ...resources.flatMap((resource) => makeResourceOperations(resource, overrides[resource.plural])),
]
