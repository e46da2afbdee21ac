// Where this controller differs from the public contract, and why: everything else is held to it, in both directions.
import type { Api } from '../../src/config.ts'

const ON_BOTH = [
  // Second factors of people.
  'POST /authenticate/mfa',
  'GET /current-identity/mfa',
  'POST /current-identity/mfa',
  'DELETE /current-identity/mfa',
  'GET /current-identity/mfa/qr-code',
  'GET /current-identity/mfa/recovery-codes',
  'POST /current-identity/mfa/recovery-codes',
  'POST /current-identity/mfa/verify',
  // Certificates that their holders renew.
  'POST /current-identity/authenticators/{}/extend',
  'POST /current-identity/authenticators/{}/extend-verify',
  // Tokens of other issuers.
  'GET /external-jwt-signers',
]

/**
 * Documented operations that are still to come; once one is there, its line goes, and from then on the contract holds it.
 * `METHOD /path`, each parameter as `{}`.
 */
export const STILL_TO_COME: Readonly<Record<Api, readonly string[]>> = {
  client: [
    ...ON_BOTH,
    // Certificates that sessions are given.
    'GET /current-api-session/certificates',
    'POST /current-api-session/certificates',
    'GET /current-api-session/certificates/{}',
    'DELETE /current-api-session/certificates/{}',
    // Enrollment of routers.
    'POST /enroll/erott',
    'POST /enroll/extend/router',
    // What devices report of themselves.
    'POST /posture-response',
    'POST /posture-response-bulk',
  ],
  management: [
    ...ON_BOTH,
    // Certificate authorities that operators bring, and tokens of other issuers.
    'GET /cas',
    'POST /cas',
    'GET /cas/{}',
    'PUT /cas/{}',
    'PATCH /cas/{}',
    'DELETE /cas/{}',
    'GET /cas/{}/jwt',
    'POST /cas/{}/verify',
    'POST /external-jwt-signers',
    'GET /external-jwt-signers/{}',
    'PUT /external-jwt-signers/{}',
    'PATCH /external-jwt-signers/{}',
    'DELETE /external-jwt-signers/{}',
    // Care for a running database.
    'POST /database/check-data-integrity',
    'GET /database/data-integrity-results',
    'POST /database/fix-data-integrity',
    'POST /database/snapshot',
  ],
}

/**
 * Documented operations that are served and do not do their work yet. Once one does, its line goes, together with
 * `incomplete` in its definition.
 */
export const INCOMPLETE: readonly string[] = [
  'POST /enroll/ca',
  'POST /enroll/ottca',
  'DELETE /identities/{}/mfa',
  'GET /identities/{}/failed-service-requests',
  'GET /identities/{}/posture-data',
  'PUT /identities/{}/trace',
]

/** Operations that the contract does not know, beside those that are marked as our own. */
export const BEYOND: readonly string[] = [
  // The documents change settings at this path, the contract at the one with `/effective` only.
  'PUT /controller-settings/{}',
  'PATCH /controller-settings/{}',
  'DELETE /controller-settings/{}',
]

export interface Difference {
  readonly operations: RegExp
  /** Facts of the contract that we leave out, or facts of ours that it does not know. */
  readonly facts: RegExp
  readonly because: string
}

const EVERY = /./

/** What the contract says and this controller does not. */
export const LEFT_OUT: readonly Difference[] = [
  {
    operations: /\/enroll$/,
    facts: /^body\.(certCsr|serverCertCsr|name)/,
    because: 'routers enroll at a path of their own, which is still to come',
  },
  {
    operations: /\/enroll\/ottca$/,
    facts: /^body\.clientCsr/,
    because: 'the certificate is the one of the connection',
  },
  {
    operations: /\/enroll/,
    facts: /^status (400|404)$/,
    because: 'an unknown token is 400, and nothing is asked for by an id; without a body nothing can be malformed',
  },
  {
    operations: /(\/edge-routers|\/sessions(\/\{\})?)$/,
    facts: /\.appData: object$/,
    because: 'what operators note about routers is not for clients; the peer leaves it out as well',
  },
  {
    operations: /\/policy-advice\//,
    facts: /^data\.\w+RouterCount: number$/,
    because: 'counts are whole numbers, where the contract says numbers',
  },
  { operations: /\/network-jwts$/, facts: /^status 400$/, because: 'it takes nothing that could be wrong' },
  {
    operations: /\/specs\/\{\}\/spec$/,
    facts: /^data: string$/,
    because: 'the document stands for itself, without envelope',
  },
  {
    operations: /\/edge-routers\/\{\}\/service-edge-router-policies$/,
    facts: /^data\[\]\.(identityRoles|postureCheckRoles|type)/,
    because: 'an error of the contract, which shows service policies there',
  },
  {
    operations: /^PATCH \/posture-checks/,
    facts: /^body\.typeId is required$/,
    because: 'a patch may leave out what stays',
  },
]

/** What this controller says and the contract does not. */
export const ADDED: readonly Difference[] = [
  {
    operations: /\/policy-advice\//,
    facts: /^data\.\w+RouterCount: integer$/,
    because: 'counts are whole numbers, where the contract says numbers',
  },
  { operations: EVERY, facts: /^status /, because: 'every status that is to be expected is named' },
  {
    operations: /^GET /,
    facts: /^query (filter|limit|offset|sort|roleFilter|roleSemantic): /,
    because: 'every list can be filtered, sorted and paged in the same way',
  },
  {
    operations: /^GET .*\/services/,
    facts: /^query (configTypes|asIdentity): /,
    because: 'as for the list, so for one of it',
  },
  {
    operations: EVERY,
    facts: /(^|\.)data(\[\])?\.interfaces|^data(\[\])?\.lastAuthResolvedToRoot/,
    because: 'later releases have it, and so their clients expect it',
  },
  {
    operations: /\/posture-checks/,
    facts: /^(body|data)(\[\])?\./,
    because: 'the contract shows what all kinds of check have in common, and leaves out what each has of its own',
  },
  {
    operations: /\/authenticators\/\{\}$/,
    facts: /^body\.(identityId|method|certPem)/,
    because: 'a record can be sent back as it was read',
  },
  {
    operations: /\/config-types/,
    facts: /^body\.schema may be null$/,
    because: 'a record without a schema shows null, and can be sent back as it was read',
  },
  { operations: /\/configs\/\{\}$/, facts: /^body\.configTypeId/, because: 'a record can be sent back as it was read' },
  { operations: /\/enrollments/, facts: /\.urlName: string$/, because: 'clients of the peer find it there' },
  { operations: /^POST \/enrollments$/, facts: /^body\.tags/, because: 'every record has tags' },
  {
    operations: /\/terminators\/\{\}$/,
    facts: /^body\.(identity|identitySecret)/,
    because: 'a record can be sent back as it was read; under whose name it hosts stays as it was made',
  },
  {
    operations: /\/services\/\{\}\/edge-routers$/,
    facts: /^data\.edgeRouters\[\]\.(_links|id|createdAt|updatedAt|tags)/,
    because: 'the members of every record',
  },
  {
    operations: /\/sessions(\/\{\})?$/,
    facts: /\.edgeRouters\[\]\.id: |\.servicePolicies/,
    because: 'one shape on both APIs, and ids by which the CLI finds routers',
  },
  { operations: /\/controller-settings/, facts: /controllerId/, because: 'the setting says whose it is' },
  {
    operations: /^GET \/controller-settings$/,
    facts: /^data\[\]/,
    because: 'an error of the contract, which does not say what the list holds',
  },
  {
    operations: /\/enrollments/,
    facts: /^data(\[\])?\.ca: /,
    because: 'decisions: the authority of an enrollment is shown',
  },
  {
    operations: /\/api-sessions/,
    facts: /^data(\[\])?\.(expirationSeconds|expiresAt)/,
    because: 'as for the session of the caller',
  },
  {
    operations: /\/enroll/,
    facts: /^body\.(token|password) is required$/,
    because: 'without it there is nothing to do',
  },
  {
    operations: /\/enroll\/(ca|ottca)$/,
    facts: /^data\.(ca|cert|serverCert)/,
    because: 'one shape for all ways to enroll by a certificate',
  },
  {
    operations: /\/enroll(\/updb)?$/,
    facts: /^data\.username/,
    because: 'decisions: who enrolled learns its username',
  },
  {
    operations: /\/edge-routers\/\{\}\/service-edge-router-policies$/,
    facts: /^data\[\]\.edgeRouterRoles/,
    because: 'an error of the contract, which shows service policies there',
  },
]
