// The parts of the data model of routers, and the events that change it, as plain JSON, without its form on the wire.
import type { PolicyType } from '../../policy/policy-index.ts'
import type { TokenRevocation } from '../../storage/transactions/changes.ts'

export interface ModelConfigType {
  readonly kind: 'config-type'
  readonly id: string
  readonly name: string
}

export interface ModelConfig {
  readonly kind: 'config'
  readonly id: string
  readonly name: string
  readonly typeId: string
  /** JSON. */
  readonly data: string
}

type Precedence = 'default' | 'required' | 'failed'

export interface ModelIdentity {
  readonly kind: 'identity'
  readonly id: string
  readonly name: string
  readonly hostingCost: number
  readonly hostingPrecedence: Precedence
  /** By the id of a service. */
  readonly serviceCosts: Readonly<Record<string, number>>
  readonly servicePrecedences: Readonly<Record<string, Precedence>>
  /** JSON; empty if there is none. */
  readonly appData: string
  /** Service → config type → the config that the identity gets in place of that of the service. */
  readonly configs: Readonly<Record<string, Readonly<Record<string, string>>>>
  readonly isDisabled: boolean
}

export interface ModelService {
  readonly kind: 'service'
  readonly id: string
  readonly name: string
  readonly isEncryptionRequired: boolean
  /** Ids of configs, in their order. */
  readonly configIds: readonly string[]
}

export interface ModelPostureCheck {
  readonly kind: 'posture-check'
  readonly id: string
  readonly name: string
  readonly typeId: string
  readonly details: unknown
}

export interface ModelPolicy {
  readonly kind: 'policy'
  readonly id: string
  readonly name: string
  readonly type: PolicyType
}

export interface ModelRevocation extends TokenRevocation {
  readonly kind: 'revocation'
  readonly id: string
}

export type ModelEntity =
  | ModelConfigType
  | ModelConfig
  | ModelIdentity
  | ModelService
  | ModelPostureCheck
  | ModelPolicy
  | ModelRevocation

/** A public key is made known by other means, but it must be removed also where a router does not listen at the moment. */
export type ModelKind = ModelEntity['kind'] | 'public-key'

export const MEMBER_KINDS = ['services', 'posture-checks', 'identities'] as const
export type MemberKind = (typeof MEMBER_KINDS)[number]

/** Records that a policy matches from now on, or does not match any more. */
export interface MembershipEvent {
  readonly action: 'add' | 'remove'
  readonly policyId: string
  readonly members: MemberKind
  readonly ids: readonly string[]
}

export type ModelEvent =
  | { readonly action: 'create' | 'update'; readonly entity: ModelEntity }
  | { readonly action: 'delete'; readonly kind: ModelKind; readonly id: string }
  | MembershipEvent

/** The changes of the model by one commit. */
export interface ModelChangeSet {
  /** The position of the commit. */
  readonly index: number
  /** The position of the commit that changed the model before. */
  readonly previousIndex: number
  readonly events: readonly ModelEvent[]
}
