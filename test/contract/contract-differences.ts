// The differences of this controller from the public contract, with their reasons; everything else must agree, in both directions.
import type { ContractApi } from '../world/public-contract.ts'

/**
 * Documented operations that are still to come; once one is there, its line goes, and from then on the contract holds it.
 * `METHOD /path`, each parameter as `{}`.
 */
export const STILL_TO_COME: Readonly<Record<ContractApi, readonly string[]>> = {
  client: [],
  management: [],
}

/**
 * Documented operations that are served and do not do their work yet. Once one does, its line goes, together with
 * `incomplete` in its definition.
 */
export const INCOMPLETE: readonly string[] = []

/** Operations that the contract does not know, besides those that are marked as our own. */
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
  /** The row of the public documents that decides it, if one does, and why. */
  readonly because: string
}

const EVERY = /./

/** Parts of the contract that this controller does not have. */
export const LEFT_OUT: readonly Difference[] = [
  {
    operations: /^POST \/authenticate$/,
    facts: /^body\.envInfo\.(domain|hostname) maxLength 253$/,
    because: 'released clients send environment texts of up to 255 characters',
  },
  {
    operations: /^(POST|PUT|PATCH) \/service-policies(\/\{\})?$/,
    facts: /^body\.type is one of Bind, Dial, Invalid$/,
    because: 'Service policies: an invalid type is not a type',
  },
  {
    operations: /^(POST|PUT|PATCH) \/posture-checks(\/\{\})?$/,
    facts: /^body\.typeId is one of [A-Z_, ]+$/,
    because: 'Posture checks: each type is a variant with members of its own, and they name the same types',
  },
  {
    operations: /^POST \/posture-response(-bulk)?$/,
    facts: /^body(\[\])?\.typeId is one of [A-Z_, ]+$/,
    because:
      'Posture responses: the contract names the types of checks, of which clients report some, and one besides them',
  },
  {
    operations: /^(POST \/enroll(\/\w+)?|GET \/enroll\/jwks)$/,
    facts: /^status (400|404)$/,
    because:
      'C33 to C40: an unknown token is 400, and nothing is asked for by an id; without a body nothing can be malformed',
  },
  {
    operations: /^(GET \/(current-identity|services\/\{\})\/edge-routers|(GET|POST) \/sessions|GET \/sessions\/\{\})$/,
    facts: /^data(\[\])?(\.edgeRouters\[\])?\.appData: object$/,
    because: 'C32: address and online status; what operators note about routers is not for clients',
  },
  {
    operations: /^GET \/identities\/\{\}\/policy-advice\/\{\}$/,
    facts: /^data\.\w+RouterCount: number$/,
    because: 'Policy advice: `identityRouterCount` and `serviceRouterCount` are integers',
  },
  {
    operations: /^GET \/specs\/\{\}\/spec$/,
    facts: /^data: string$/,
    because: 'C6: the body is the specification document itself',
  },
  {
    operations: /^GET \/edge-routers\/\{\}\/service-edge-router-policies$/,
    facts: /^data\[\]\.(identityRoles|postureCheckRoles|type)(Display)?((\[\])?(\.\w+)?: \w+| is required)$/,
    because: 'Edge routers: an error of the contract, which shows service policies there',
  },
  {
    operations: /^GET .*\/edge-routers(\/\{\})?$/,
    facts: /^data(\[\])?\.(arch|buildDate|os|revision|version) is required$/,
    because: 'an error of the contract, which has these members inside of `versionInfo`, and requires them beside it',
  },
  {
    operations: /^(POST \/authenticate|GET \/(current-api-session|api-sessions(\/\{\})?))$/,
    facts: /^data(\[\])?\.cachedUpdatedAt is required$/,
    because: 'an error of the contract, which requires a member that it does not define',
  },
  {
    operations: /^GET .*\/enrollments(\/\{\})?$/,
    facts: /^data(\[\])?\.details is required$/,
    because: 'an error of the contract, which requires a member that it does not define',
  },
  {
    operations: /^GET \/enroll\/jwks$/,
    facts: /^data\.keys\[\]\.(d|dp|dq|p|q|qi|oth|key_ops|x5t|x5u)(\[\](\.\w+)?)?: \w+$/,
    because:
      'C40: public keys have no private members, and clients find a key by its id or the SHA-256 of its certificate',
  },
  {
    operations: /^GET \/external-jwt-signers$/,
    facts: /^(data\[\]\.openIdConfigurationUrl: string|status 401)$/,
    because: 'C42: no field of a signer holds that URL, and the list needs no session',
  },
  {
    operations: /^DELETE \/(services|sessions|terminators|(edge-router|service-edge-router|service)-policies)\/\{\}$/,
    facts: /^status 409$/,
    because: 'no other record needs such a record: what refers to it is deleted or changed with it',
  },
  {
    operations: /^PATCH \/posture-checks\/\{\}$/,
    facts: /^body\.typeId is required$/,
    because: 'Posture checks: a patch may leave out what stays',
  },
]

/** Parts of this controller that the contract does not have. */
export const ADDED: readonly Difference[] = [
  {
    operations: /^POST \/edge-routers\/\{\}\/re-enroll$/,
    facts: /^body(: object|\.expiresAt.*)$/,
    because: 'the end of the new token can be chosen, as it can where a router is created; the body is optional',
  },
  {
    operations: /^DELETE \/current-api-session$/,
    facts: /^id deleteCurrentApiSession$/,
    because: 'C19: the contract gives the logout no id',
  },
  {
    operations: EVERY,
    facts: /^body\.name minLength 1$/,
    because: 'a name is what people find a record by, so it is not empty',
  },
  {
    operations: EVERY,
    facts: /^body\.(enrollment\.updb|username|password) (minLength|maxLength) \d+$/,
    because: 'Limits: `username` 4 to 100, `password` 5 to 100 characters',
  },
  {
    operations: /^POST \/enroll\/(ott|ottca)$/,
    facts: /^body\.token format uuid$/,
    because: 'Limits: enrollment `token` has the UUID format',
  },
  {
    operations: /^POST \/current-api-session\/certificates$/,
    facts: /^data\.(createdAt|updatedAt|tags|subject|fingerprint|validFrom|validTo): \w+$/,
    because: 'C21: the response is the record of the certificate',
  },
  {
    operations: /^(POST|PUT|PATCH) \/auth-policies(\/\{\})?$/,
    facts: /^body\.primary\.updb\.(lockoutDurationMinutes|maxAttempts|minPasswordLength) (minimum|maximum) -?\d+$/,
    because: 'whole numbers of 32 bits, or as far as times and passwords go',
  },
  {
    operations: /^POST \/(identities|edge-routers|routers|transit-routers)$/,
    facts: /^body\.enrollment(: object|\.expiresAt(: string| format date-time| may be null))$/,
    because: 'an administrator chooses how long a token is valid where it is made, not only where it is refreshed',
  },
  {
    operations: /^POST \/identities$/,
    facts: /^body\.disabled: boolean$/,
    because: 'an identity can be created disabled: two requests would leave a moment in which it can sign in',
  },
  {
    operations: /^(GET \/current-identity|GET \/(\S+\/)?identities(\/\{\})?|(POST|PUT|PATCH) \/identities(\/\{\})?)$/,
    facts: /^(body|data(\[\])?)\.permissions(\[\])?(: (array|string)| is required| may be null| maxItems \d+)$/,
    because: 'release 2.0 added the permissions of identities that do not administer',
  },
  {
    operations: /^GET (\/\S+)?\/services(\/\{\})?$/,
    facts: /^data(\[\])?\.postureQueries\[\]\.postureQueries\[\]\.(timeoutAt: string|promptOn(Wake|Unlock): boolean)$/,
    because: 'release 2.0 tells clients when they have to ask for a code again',
  },
  {
    operations: /^POST \/identities\/\{\}\/disable$/,
    facts: /^body\.durationMinutes (minimum|maximum) -?\d+$/,
    because: 'as far as times go',
  },
  {
    operations: /^(POST|PUT|PATCH) \/services(\/\{\})?$/,
    facts: /^body\.(configs maxItems 500|maxIdleTimeMillis (minimum 0|maximum \d+)|terminatorStrategy is one of .*)$/,
    because: 'a service has strategies that there are, times that there can be, and a bounded number of configs',
  },
  {
    operations: /^(POST|PUT|PATCH) \/service-policies(\/\{\})?$/,
    facts: /^body\.type is one of Bind, Dial$/,
    because: 'Service policies: an invalid type is not a type',
  },
  {
    operations: /^POST \/authenticators$/,
    facts: /^body\.method is one of cert, updb$/,
    because: 'Authenticator (admin): of the methods that authenticators have',
  },
  {
    operations: /^POST \/authenticate$/,
    facts: /^body\.envInfo\.(domain|hostname) maxLength 255$/,
    because: 'released clients send environment texts of up to 255 characters',
  },
  {
    operations: /^POST \/enroll$/,
    facts: /^body\.name maxLength 200$/,
    because: 'a client chooses it, and no administrator reads it before it becomes the name of an identity',
  },
  {
    operations: /^(POST|PUT|PATCH) \/cas(\/\{\})?$/,
    facts: /^body\.externalIdClaim(\.index (minimum|maximum) \d+| may be null)$/,
    because: 'a position in a list, and the way to remove the claim',
  },
  {
    operations: /^(POST|PUT|PATCH) \/terminators(\/\{\})?$/,
    facts: /^body\.address minLength 1$/,
    because: 'nothing is reached at an empty address',
  },
  {
    operations: /^(POST|DELETE) \/identities\/\{\}\/service-configs$/,
    facts: /^body maxItems 1000$/,
    because: 'one request changes a bounded number of records',
  },
  {
    operations: /\/policy-advice\//,
    facts: /^data\.\w+RouterCount: integer$/,
    because: 'counts are whole numbers, where the contract says numbers',
  },
  {
    operations: /^GET \/external-jwt-signers(\/\{\})?$/,
    facts: /^data(\[\])?\.keyStatus/,
    because: 'an administrator sees whether the endpoint of a signer responds',
  },
  {
    operations: /^PATCH \/external-jwt-signers\/\{\}$/,
    facts: /^body\.scopes may be null$/,
    because: 'External JWT signer: `scopes` is an array of strings or null',
  },
  { operations: EVERY, facts: /^data.* is required$/, because: 'what is always sent is declared' },
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
    operations: /\/(transit-)?routers(\/\{\})?$/,
    facts: /^data(\[\])?\.(version|linkCount|circuitCount|controllers|dataModel|supportsOidc)/,
    because: 'people look for it in the list of routers',
  },
  {
    operations: /\/posture-checks/,
    facts: /^(body|data)(\[\])?\./,
    because: 'the contract shows what all kinds of check have in common, and leaves out what each has of its own',
  },
  {
    operations: /^POST \/posture-response(-bulk)?$/,
    facts: /^body(\[\])?(\.| maxItems 500$)/,
    because:
      'the contract shows what all responses have in common, and leaves out what each type has; what is stored is bounded',
  },
  {
    operations: /^GET \/identities\/\{\}\/(posture-data|failed-service-requests)$/,
    facts: /^data.*(may be null|\.path: string|\.(actualValue|expectedValue|semantic|criteria): .*)$/,
    because:
      'what was never reported has no value; the path of a process, and what was compared, say why a check fails',
  },
  {
    operations: /\/authenticators\/\{\}$/,
    facts: /^body\.(identityId|method|certPem)/,
    because: 'a record can be sent back as it was read',
  },
  { operations: /\/cas\/\{\}$/, facts: /^body\.certPem/, because: 'a record can be sent back as it was read' },
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
    facts: /^data(\[\])?\.ca(: |\.)/,
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
