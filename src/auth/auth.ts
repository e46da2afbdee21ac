// What signs identities in and holds their sessions, composed.
import type { Config } from '../config.ts'
import type { Log } from '../log.ts'
import type { Authority } from '../pki/authority.ts'
import type { SecretCipher } from '../secrets/secret-cipher.ts'
import { createExternalSigners, type ExternalSigners } from '../signers/external-signers.ts'
import type { EntityStore } from '../store/entities.ts'
import type { WatchedClock } from '../watched-clock.ts'
import type { ApiSessionTokens } from './api-session-tokens.ts'
import { ApiSessions } from './api-sessions.ts'
import { AuthPolicyCache } from './auth-policies.ts'
import { ClientTrustStore } from './client-trust.ts'
import { ExtensionRequests } from './extension-requests.ts'
import { FailedSignInRecorder } from './failed-sign-ins.ts'
import { MfaSecrets } from './mfa/mfa-secrets.ts'
import { WrongCodeLimit } from './mfa/wrong-code-limit.ts'
import { PasswordHasher } from './password-hasher.ts'
import { Passwords } from './passwords.ts'
import { PresentedIssuers } from './presented-issuers.ts'
import { SignInRecorder } from './sign-in-recorder.ts'
import { VerifiedMfa } from './verified-mfa.ts'
import { WriteLimits } from './write-limits.ts'

export interface Auth {
  readonly apiSessions: ApiSessions
  readonly policies: AuthPolicyCache
  readonly extensionRequests: ExtensionRequests
  readonly verifiedMfa: VerifiedMfa
  readonly mfaSecrets: MfaSecrets
  readonly wrongCodes: WrongCodeLimit
  readonly passwordHasher: PasswordHasher
  readonly passwords: Passwords
  readonly clientTrust: ClientTrustStore
  readonly presentedIssuers: PresentedIssuers
  readonly signIns: SignInRecorder
  readonly failedSignIns: FailedSignInRecorder
  readonly writeLimits: WriteLimits
  readonly signers: ExternalSigners
}

interface Collaborators {
  readonly config: Config
  readonly clock: WatchedClock
  readonly log: Log
  readonly authority: Authority
  readonly tokens: ApiSessionTokens
  readonly entities: EntityStore
  readonly secretCipher: SecretCipher
}

/**
 * Its projections (`apiSessions`, `policies`, `clientTrust`, `extensionRequests`, `verifiedMfa`, `signers.directory`) are empty
 * until the store starts them. @throws ConfigError
 */
export function createAuth({ config, clock, log, authority, tokens, entities, secretCipher }: Collaborators): Auth {
  const policies = new AuthPolicyCache()
  const apiSessions = new ApiSessions({
    entities,
    tokens,
    clock,
    timeout: config['session.timeout'],
    maxPerIdentity: config['limits.sessionsPerIdentity'],
  })
  clock.onStep((milliseconds) => apiSessions.followClock(milliseconds))
  const passwordHasher = new PasswordHasher(config['limits.passwordQueue'])
  return {
    apiSessions,
    policies,
    extensionRequests: new ExtensionRequests(),
    verifiedMfa: new VerifiedMfa(),
    mfaSecrets: new MfaSecrets(secretCipher, config),
    wrongCodes: new WrongCodeLimit(),
    passwordHasher,
    passwords: new Passwords({ entities, hasher: passwordHasher, policies, apiSessions }),
    clientTrust: new ClientTrustStore(authority),
    presentedIssuers: new PresentedIssuers(),
    signIns: new SignInRecorder(config['limits.signInsPerIdentity']),
    failedSignIns: new FailedSignInRecorder(),
    writeLimits: new WriteLimits(config['limits.writesPerIdentity'], config['limits.ownChangesPerIdentity']),
    signers: createExternalSigners({ config, clock, log }),
  }
}
