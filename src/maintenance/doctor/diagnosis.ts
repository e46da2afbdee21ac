// The findings of the doctor: what is in order, what is wrong or soon will be, and what helps.

export interface Diagnosis {
  /** The check that found it: one word for programs. */
  readonly check: string
  /** The subject of the diagnosis: a record by its name, a file, a setting. */
  readonly subject: string
  /** One sentence. */
  readonly message: string
  /** The command that helps, or what to do if no command does. */
  readonly remedy: string
}

/** One check, and what it found. */
export interface DoctorFinding {
  /** One word for programs. */
  readonly name: string
  /** The state of the controller if the check passes. */
  readonly summary: string
  /** `unknown` if nothing shows it, such as routers while no controller runs. */
  readonly outcome: 'passed' | 'failed' | 'unknown'
}

/** Every check, and the diagnoses of those that failed. */
export interface Report {
  readonly checks: readonly DoctorFinding[]
  readonly diagnoses: readonly Diagnosis[]
}

/** A problem that the doctor has repaired. */
export type Fix = Omit<Diagnosis, 'remedy'>

/** The number of diagnoses of one check: more have the same cause, as a rule. */
export const MAX_DIAGNOSES_PER_CHECK = 20
