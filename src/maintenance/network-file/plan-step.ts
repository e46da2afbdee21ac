// One change of a plan: a record that is created, changed or deleted.
import type { FileResource } from './file-resources.ts'

export type PlannedValues = Readonly<Record<string, unknown>> & { readonly id: string }

/** A member that changes, as the file shows it. */
export interface MemberChange {
  readonly name: string
  /** Absent for a new record. */
  readonly before?: unknown
  readonly after: unknown
  /** Whether a new record has the default. */
  readonly isDefault?: true
}

interface StepCommon {
  readonly fileResource: FileResource
  readonly id: string
  /** The name of the record, or the names that identify it. */
  readonly label: string
}

export interface CreateStep extends StepCommon {
  readonly action: 'create'
  /** The place of the record in the request, for errors. */
  readonly path: string
  readonly after: PlannedValues
  readonly members: readonly MemberChange[]
}

export interface ChangeStep extends StepCommon {
  readonly action: 'change'
  readonly path: string
  readonly before: PlannedValues
  readonly after: PlannedValues
  /** The fields that the file sets. */
  readonly values: Readonly<Record<string, unknown>>
  readonly members: readonly MemberChange[]
  /** The controller creates the record with another one of the plan; the file changes it afterwards. */
  readonly isCreatedByPlan: boolean
}

export interface DeleteStep extends StepCommon {
  readonly action: 'delete'
  readonly before: PlannedValues
}

export type PlanStep = CreateStep | ChangeStep | DeleteStep
