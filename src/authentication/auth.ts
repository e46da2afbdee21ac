// Composes the parts that sign identities in and hold their sessions.
import type { Log } from '../foundation/log.ts'
import type { WatchedClock } from '../foundation/watched-clock.ts'
import type { Authority } from '../pki/authority.ts'
import type { Config } from '../settings/settings.ts'
import type { EntityStore } from '../storage/entities/entities.ts'
import type { SecretCipher } from '../storage/secrets/secret-cipher.ts'
import type { ApiSessionTokens } from './api-sessions/api-session-tokens.ts'
import { ApiSessions } from './api-sessions/api-sessions.ts'
import { SessionLifetime } from './api-sessions/session-lifetime.ts'
import { AuthPolicies } from './auth-policies.ts'
import { ExtensionRequests } from './credentials/extension-requests.ts'
import { type PasswordCost, PasswordHasher } from './credentials/password-hasher.ts'
import { Passwords } from './credentials/passwords.ts'
import { MachineTokens } from './machine-tokens/machine-tokens.ts'
import { MfaSecrets } from './mfa/mfa-secrets.ts'
import { VerifiedMfa } from './mfa/verified-mfa.ts'
import { ClientTrustStore } from './sign-in/client-trust.ts'
import { FailedSignInRecorder } from './sign-in/failed-sign-ins.ts'
import { PresentedIssuers } from './sign-in/presented-issuers.ts'
import { RefusedCertificateLimit } from './sign-in/refused-certificates.ts'
import { SignInRecorder } from './sign-in/sign-in-recorder.ts'
import { createExternalSigners, type ExternalSigners } from './signers/external-signers.ts'
import { WriteLimits } from './write-limits.ts'

export interface Auth {
  readonly apiSessions: ApiSessions
  readonly machineTokens: MachineTokens
  readonly policies: AuthPolicies
  readonly extensionRequests: ExtensionRequests
  readonly verifiedMfa: VerifiedMfa
  readonly mfaSecrets: MfaSecrets
  readonly passwordHasher: PasswordHasher
  readonly passwords: Passwords
  readonly clientTrust: ClientTrustStore
  readonly presentedIssuers: PresentedIssuers
  readonly signIns: SignInRecorder
  readonly failedSignIns: FailedSignInRecorder
  readonly refusedCertificates: RefusedCertificateLimit
  readonly writeLimits: WriteLimits
  readonly signers: ExternalSigners
}

interface AuthParts {
  readonly config: Config
  readonly clock: WatchedClock
  readonly log: Log
  readonly authority: Authority
  readonly tokens: ApiSessionTokens
  readonly entities: EntityStore
  readonly secretCipher: SecretCipher
  readonly passwordCost: PasswordCost | undefined
  /** How many controllers of the network run, this one included. */
  readonly countControllers: () => number
  /** Whether there may be others. */
  readonly isShared: boolean
}

/**
 * Its projections (`apiSessions`, `machineTokens`, `policies`, `clientTrust`, `extensionRequests`, `verifiedMfa`, `signers.directory`) are empty
 * until the store starts them. @throws ConfigError
 */
export function createAuth(parts: AuthParts): Auth {
  const { config, clock, log, authority, tokens, entities, secretCipher, passwordCost, countControllers, isShared } =
    parts
  const policies = new AuthPolicies()
  const apiSessions = new ApiSessions({
    entities,
    tokens,
    clock,
    lifetime: new SessionLifetime({
      timeoutMs: config['session.timeout'],
      accessMs: config['oidc.accessTokenLifetime'],
      refreshMs: config['oidc.refreshTokenLifetime'],
      maxAgeMs: { people: config['session.maxAge'], devices: config['session.maxAgeOfDevices'] },
    }),
    maxPerIdentity: config['limits.sessionsPerIdentity'],
    isShared,
  })
  clock.onStep((milliseconds) => apiSessions.followClock(milliseconds))
  const passwordHasher = new PasswordHasher(config['limits.passwordQueue'], passwordCost, clock)
  return {
    apiSessions,
    machineTokens: new MachineTokens(clock),
    policies,
    extensionRequests: new ExtensionRequests(),
    verifiedMfa: new VerifiedMfa(),
    mfaSecrets: new MfaSecrets(secretCipher, config),
    passwordHasher,
    passwords: new Passwords({ entities, hasher: passwordHasher, policies, apiSessions }),
    clientTrust: new ClientTrustStore(authority),
    presentedIssuers: new PresentedIssuers(),
    signIns: new SignInRecorder(config['limits.signInsPerIdentity'], countControllers),
    failedSignIns: new FailedSignInRecorder(log),
    refusedCertificates: new RefusedCertificateLimit(),
    writeLimits: new WriteLimits(
      config['limits.writesPerIdentity'],
      config['limits.ownChangesPerIdentity'],
      countControllers,
    ),
    signers: createExternalSigners({ config, clock, log }),
  }
}
